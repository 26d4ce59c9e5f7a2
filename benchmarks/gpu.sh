#!/usr/bin/env bash
# All that needs a GPU, in one call of less than 9 minutes on one H100 or H200: annotation and training
# beside the same peers, share of the encoder's limit, utilisation, memory, parity of the formats.
#
#     bash benchmarks/gpu.sh                      # where the package and its peers are installed
#     WHEELS=wheels bash benchmarks/gpu.sh        # installs those of gpu-wheels.txt and ours first
#
# Results go to benchmarks/results/*_gpu.json.
#
# Fetches nothing. Brings its notes and its trained small pipelines along: run before, where the
# corpora are, `python -m benchmarks.accuracy.ner random --task meddocan --seeds 0` and the same of compact, and take .work/benchmarks/
# corpora, encoders and trials with you. A step that fails or runs out of its time is reported at the end
# and does not keep the others from running.
set -uo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
failed=0

if [ -n "${WHEELS:-}" ]; then
    site="$(mktemp -d)"
    # Ours too: spaCy finds components by the entry points of an installed package.
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-build-isolation \
        --target "$site" "$WHEELS"/*.whl . || exit 1
    export PYTHONPATH="$site"
fi
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=true

"$python" -c 'import spacy, torch; spacy.require_gpu(); print(torch.cuda.get_device_name(), torch.__version__)' || {
    echo "gpu.sh: no GPU that torch and cupy can use; bioclin info --gpu-id 0 says what is missing" >&2
    exit 1
}

step() {  # SECONDS COMMAND…
    local limit="$1" started="$SECONDS"
    shift
    timeout "$limit" "$@" || { echo "gpu.sh: failed ($?): $*" >&2; failed=$((failed + 1)); }
    echo "== $((SECONDS - started)) s: $*"
}

speed="$python -W ignore -m benchmarks.speed.throughput"
step 210 $speed annotate --encoder base --notes meddocan --docs 250 --rounds 5
step 90 $speed annotate --encoder compact --notes meddocan --docs 250 --rounds 5
step 120 $speed train --encoder base --parts 512 --rounds 3
step 60 $speed train --encoder compact --parts 512 --rounds 3
step 60 "$python" -W ignore -m benchmarks.accuracy.parity --tasks meddocan
echo "$failed steps failed"
exit "$failed"
