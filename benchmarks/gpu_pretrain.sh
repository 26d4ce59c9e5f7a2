#!/usr/bin/env bash
# Pretraining on one GPU in slices of less than 9 minutes: call it again until it says "million weights".
#
#     bash scripts/build_encoder.sh                # before, where the text is: cleaning and vocabulary
#     bash benchmarks/gpu_pretrain.sh [FOLDER]     # FOLDER: what that made; its `gpu` gets the checkpoints
#     WHEELS=wheels bash benchmarks/gpu_pretrain.sh    # installs ours and those of gpu-wheels.txt first
#
# Fetches nothing. FOLDER travels with clean/, vocabulary/ and minilm/, and comes back with gpu/. 40,000 updates of 32,768 pieces
# are 1.3 thousand million pieces; an H100 should need about half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${1:-encoders/rebuild}"
python="${PYTHON:-python3}"

if [ -n "${WHEELS:-}" ]; then
    site="$(mktemp -d)"
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-build-isolation \
        --target "$site" "$WHEELS"/*.whl .
    export PYTHONPATH="$site"
fi
export HF_HUB_OFFLINE=1

"$python" -c 'import torch; assert torch.cuda.is_available(); print(torch.cuda.get_device_name())' || {
    echo "gpu_pretrain.sh: no GPU that torch can use" >&2
    exit 1
}
"$python" -W ignore -m spacy_bioclin pretrain "$folder/clean" -o "$folder/gpu" --resume \
    --start-from "$folder/minilm" --tokenizer "$folder/vocabulary" --layers 4 \
    --steps "${STEPS:-40000}" --batch-pieces 32768 --learn-rate 1e-3 --mask-rate 0.2 --dropout 0.1 \
    --share es=0.5 --share en=0.5 --every 1000 --max-seconds "${SECONDS_A_SLICE:-500}"
