#!/usr/bin/env bash
# All that needs a GPU, in one call of less than 10 minutes on one H100 or H200: annotation and training
# beside the same peers, share of the encoder's limit, utilisation, memory, parity of the formats.
#
#     bash benchmarks/gpu.sh --dry-run    # here: packs libraries and notes, prints sizes and steps
#     bash benchmarks/gpu.sh              # there, or where the package and its peers are installed
#
# Results go to benchmarks/results/*_gpu.json, and to $OUT if it is set. Fetches nothing there: gpu_pack.py
# says what to bring. The small pipelines are trained first, which is a result too. A step that fails or
# runs out of its time is reported at the end and does not keep the others from running.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0 dry=""
[ "${1:-}" = --dry-run ] && dry=1

step() {  # SECONDS COMMAND…
    local limit="$1" started="$SECONDS"
    shift
    if [ -n "$dry" ]; then
        echo "at most $limit s: $*"
        return
    fi
    timeout "$limit" "$@" || { echo "gpu.sh: failed ($?): $*" >&2; failed=$((failed + 1)); }
    echo "== $((SECONDS - started)) s: $*"
}

if [ -n "$dry" ]; then
    python="${PYTHON:-python}"
    "$python" -W ignore -m benchmarks.gpu_pack || exit 1
else
    . benchmarks/gpu_setup.sh
    "$python" -c 'import spacy, torch; spacy.require_gpu(); print(torch.cuda.get_device_name(), torch.__version__)' || {
        echo "gpu.sh: no GPU that torch and cupy can use; bioclin info --gpu-id 0 says what is missing" >&2
        exit 1
    }
fi

ner="$python -W ignore -m benchmarks.accuracy.ner"
speed="$python -W ignore -m benchmarks.speed.throughput"
step 100 $ner compact --task meddocan --seeds 0
step 60 $ner random --task meddocan --seeds 0
step 150 $speed annotate --encoder base --notes meddocan --docs 250 --rounds 4
step 70 $speed annotate --encoder compact --notes meddocan --docs 250 --rounds 5
step 90 $speed train --encoder base --parts 512 --rounds 3
step 50 $speed train --encoder compact --parts 512 --rounds 3
step 50 "$python" -W ignore -m benchmarks.accuracy.parity --tasks meddocan
[ -n "$dry" ] || bring_back benchmarks/results/*_gpu.json
echo "$failed steps failed"
exit "$failed"
