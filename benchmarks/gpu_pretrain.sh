#!/usr/bin/env bash
# Pretraining on one GPU in slices of less than 10 minutes: call it again, on the same machine, until it
# says "million weights". Only then there is an encoder.
#
#     bash scripts/build_encoder.sh [FOLDER]               # before, where the text is: cleaning
#     bash benchmarks/gpu_pretrain.sh --dry-run [FOLDER]   # here: packs libraries and text, prints sizes
#     bash benchmarks/gpu_pretrain.sh [FOLDER]             # there; FOLDER/gpu gets the checkpoints
#
# It goes on from the included encoder, which travels with the checkout, so that neither vocabulary nor
# MiniLM has to. The encoder goes to $OUT, if it is set, in fp16 and in files of less than
# 16 MiB: join them with cat. Checkpoints, three times as large, stay there: STEPS is what one loan of half
# an hour should allow (24,000 updates of 32,768 pieces).
set -euo pipefail
cd "$(dirname "$0")/.."
dry=""
if [ "${1:-}" = --dry-run ]; then
    dry=1
    shift
fi
folder="${1:-encoders/rebuild}"
if [ -n "$dry" ]; then
    exec "${PYTHON:-python}" -W ignore -m benchmarks.gpu_pack --text "$folder/clean"
fi
. benchmarks/gpu_setup.sh
"$python" -c 'import torch; assert torch.cuda.is_available(); print(torch.cuda.get_device_name())' || {
    echo "gpu_pretrain.sh: no GPU that torch can use" >&2
    exit 1
}
start="${START_FROM:-assets/encoders/bioclin-compact}"
"$python" -W ignore -m spacy_bioclin pretrain "$folder/clean" -o "$folder/gpu" --resume \
    --start-from "$start" --steps "${STEPS:-24000}" --batch-pieces 32768 --learn-rate 1e-3 --mask-rate 0.2 --dropout 0.1 \
    --share es=0.5 --share en=0.5 --every 1000 --max-seconds "${SECONDS_A_SLICE:-500}"
if [ -n "${OUT:-}" ] && [ -e "$folder/gpu/encoder" ]; then
    "$python" -W ignore - "$folder/gpu/encoder" "$folder/gpu/fp16" <<'PYTHON'
import sys
from transformers import AutoModelForMaskedLM
AutoModelForMaskedLM.from_pretrained(sys.argv[1]).half().save_pretrained(sys.argv[2])
PYTHON
    bring_back "$folder"/gpu/fp16/{config.json,model.safetensors} "$folder"/gpu/pretraining.json
fi
