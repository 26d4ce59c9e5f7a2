# Read by gpu.sh and gpu_pretrain.sh, in the root of the checkout: unpacks what gpu_pack.py packed, if it is here, and checks the GPU.
python="${PYTHON:-python3}"
parts="${PARTS:-.work/gpu}"

if compgen -G "$parts/part-*/sums" >/dev/null; then
    mkdir -p .work/gpu/site
    while read -r sum name; do
        [ -e ".work/gpu/$name-$sum" ] && continue
        # The chunks of an archive come with several calls; those of earlier calls stay.
        whole=".work/gpu/$name.joined"
        find "$parts"/part-*/ -name "$name.*" | awk -F. '{print $NF, $0}' | sort -n | cut -d' ' -f2- | xargs -r cat >"$whole"
        if [ "$(sha256sum <"$whole" | cut -d' ' -f1)" != "$sum" ]; then
            echo "$name is not complete: bring the other parts too, and call again" >&2
            exit 3
        fi
        case "$name" in
            libraries*) "$python" -m tarfile -e "$whole" .work/gpu/site ;;
            *) "$python" -m tarfile -e "$whole" . ;;
        esac
        rm "$whole" && touch ".work/gpu/$name-$sum"
    done < <(cat "$parts"/part-*/sums | sort -u)
    # spaCy finds our components by entry points, which stand in the folder of metadata.
    "$python" -c "import setuptools; setuptools.setup()" -q egg_info >/dev/null
    export PYTHONPATH="$PWD/.work/gpu/site:$PWD"
fi
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=true

bring_back() {  # FILE…: copies them to $OUT, if it is set, in files of less than 16 MiB
    [ -n "${OUT:-}" ] || return 0
    local file
    for file in "$@"; do
        if [ "$(stat -c %s "$file")" -lt $((15 << 20)) ]; then
            cp "$file" "$OUT/"
        else
            split -b 15m -d "$file" "$OUT/$(basename "$file")."
        fi
    done
    [ "$(find "$OUT" -type f | wc -l)" -le 8 ] || echo "more than 8 files in $OUT" >&2
}
