#!/usr/bin/env bash
# Pretraining on one GPU in slices of less than 10 minutes: call it again, on the same machine, until it
# says "million weights". Only then there is an encoder.
#
#     bash scripts/build_encoder.sh [FOLDER]               # before, where the text is: cleaning
#     bash benchmarks/gpu_pretrain.sh --dry-run [FOLDER]   # here: packs libraries and text, prints sizes
#     bash benchmarks/gpu_pretrain.sh                      # there
#
# It goes on from the included encoder, which travels with the checkout, so that neither vocabulary nor
# initial weights have to. After each slice, the weights so far go to $OUT, if it is set, in fp16 and in
# files of less than 16 MiB, with card and record: join them with cat, and put them into the folder of the
# encoder to hand them over. Checkpoints, three times as large, stay there: STEPS is what one loan of half
# an hour should allow (24,000 updates of 32,768 pieces).
set -euo pipefail
cd "$(dirname "$0")/.."
dry=""
if [ "${1:-}" = --dry-run ]; then
    dry=1
    shift
fi
if [ -n "$dry" ]; then
    folder="${1:-${BIOCLIN_WORK:-encoders}/rebuild}"
    exec "${PYTHON:-python}" -W ignore -m benchmarks.gpu_pack --text "$folder/clean"
fi
folder=encoders/rebuild
. benchmarks/gpu_setup.sh
"$python" -c 'import torch; assert torch.cuda.is_available(); print(torch.cuda.get_device_name())' || {
    echo "gpu_pretrain.sh: no GPU that torch can use" >&2
    exit 1
}
start="${START_FROM:-assets/encoders/bioclin-sm}"
"$python" -W ignore -m spacy_bioclin pretrain "$folder/clean" -o "$folder/pretraining" --resume \
    --start-from "$start" --steps "${STEPS:-24000}" --batch-pieces 32768 --learn-rate 1e-3 --warmup 0.02 --seed 1 \
    --mask-rate 0.2 --dropout 0.1 --share es=0.5 --share en=0.5 --every 1000 --max-seconds "${SECONDS_A_SLICE:-500}"
if [ -n "${OUT:-}" ]; then
    rm -rf "$folder/shipped" && cp -r "$start" "$folder/shipped"  # whose record it continues
    "$python" -W ignore scripts/ship_encoder.py "$folder" "$folder/shipped"
    bring_back "$folder"/shipped/{config.json,model.safetensors,pretraining.json,README.md}
fi
