"""Pack what benchmarks/gpu.sh and gpu_pretrain.sh take to a machine with a GPU and no network.

    bash benchmarks/gpu.sh --dry-run            # libraries and notes
    bash benchmarks/gpu_pretrain.sh --dry-run   # libraries and the text of scripts/build_encoder.sh

A machine that is lent for minutes takes in a checkout of a few dozen MiB, so the libraries travel
without tests, C sources and symbol tables, in one archive, and everything is cut into parts that
fit beside the files of the checkout. Bring .work/gpu/part-1, then .work/gpu/part-2 … to the same
machine; each call of a script there unpacks what it can and says what is missing.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.corpora import prepare
from benchmarks.harness import ROOT, make_parser, write_json

OUT = ROOT / ".work" / "gpu"
WHEELS = ROOT / "benchmarks" / "gpu-wheels.txt"
MIB = 2**20
MAX_MIB = 60  # of a checkout and one part
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux1")
SOURCES = {".pyx", ".pxd", ".c", ".cc", ".cpp", ".h", ".hh", ".hpp", ".pyi"}


def checkout_bytes() -> int:
    """Add up the files of the checkout that git does not ignore."""
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = [ROOT / name for name in names.split("\0") if name]
    return sum(path.stat().st_size for path in paths if path.is_file())


def pack_libraries(archive: Path, python: str) -> None:
    """Install gpu-wheels.txt for another Python, remove what nothing imports, and pack the rest.

    python (str): Version there, "3.12".
    """
    site = OUT / "site"
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"),
            *("--only-binary=:all:", "--implementation", "cp", "--python-version", python),
            *(f"--platform={platform}_x86_64" for platform in PLATFORMS),
            *("--target", str(site), "-r", str(WHEELS)),
        ],
        check=True,
    )
    for folder in sorted(site.rglob("tests")):
        shutil.rmtree(folder, ignore_errors=True)
    libraries = []
    for path in site.rglob("*"):
        if path.suffix in SOURCES:
            path.unlink()
        elif ".so" in path.suffixes:
            libraries.append(str(path))
    if strip := shutil.which("strip"):
        subprocess.run([strip, "--strip-unneeded", *libraries], check=True)
    pack(archive, site, ".")


def pack(archive: Path, folder: Path, name: str) -> None:
    """Pack a folder.

    name (str): Name of the folder in the archive.
    """
    with tarfile.open(archive, "w:xz", preset=6) as tar:
        tar.add(folder, name)


def cut_into_parts(archives: list[Path], room: int) -> list[list[str]]:
    """Cut archives into the folders part-1, part-2 …, each of at most `room` bytes.

    RETURNS (list[list[str]]): Names of the files in each part.
    """
    parts: list[list[str]] = [[]]
    left = room
    for archive in archives:
        data, n = archive.read_bytes(), 0
        while data:
            if not left:
                parts.append([])
                left = room
            folder = OUT / f"part-{len(parts)}"
            folder.mkdir(exist_ok=True)
            name = f"{archive.name}.{n:02d}"
            (folder / name).write_bytes(data[:left])
            parts[-1].append(name)
            data, left, n = data[left:], left - min(left, len(data)), n + 1
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}
    lines = [f"{digest}  {name}" for name, digest in sums.items()]
    for n in range(len(parts)):  # gpu_setup.sh reads them, in whichever part it has
        (OUT / f"part-{n + 1}" / "sums").write_text("\n".join(lines) + "\n")
    return parts


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--text", type=Path, help="folder of clean text, instead of notes")
    parser.add_argument("--python", default="3.12", help="version of Python there")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for part in OUT.glob("part-*"):
        shutil.rmtree(part)
    libraries = OUT / "libraries.tar.xz"
    if not libraries.exists() or libraries.stat().st_mtime < WHEELS.stat().st_mtime:
        pack_libraries(libraries, arguments.python)
    what = OUT / "work.tar.xz"
    if arguments.text:
        # Compressed text is only a tenth larger than its pieces as uint16 (15.7 and 14.2 MiB).
        pack(what, arguments.text, "encoders/rebuild/clean")
    else:
        pack(what, prepare("meddocan"), ".work/benchmarks/corpora/meddocan")
    checkout = checkout_bytes()
    room = MAX_MIB * MIB - checkout
    if room < 2 * MIB:
        sys.exit(
            f"the checkout alone has {checkout / MIB:.1f} MiB of {MAX_MIB}: leave out the encoder "
            "that is not needed, for example with\n"
            "  git sparse-checkout set --no-cone '/*' '!/assets/encoders/bioclin-compact/'\n"
            "until `git sparse-checkout disable`"
        )
    parts = cut_into_parts([libraries, what], room - MIB // 16)
    sizes = {path.name: round(path.stat().st_size / MIB, 1) for path in (libraries, what)}
    print(f"checkout {checkout / MIB:.1f} MiB; {sizes} MiB")
    for n, names in enumerate(parts, start=1):
        folder = OUT / f"part-{n}"
        size = sum(path.stat().st_size for path in folder.iterdir())
        total = (checkout + size) / MIB
        print(f"{folder.relative_to(ROOT)}: {size / MIB:.1f} MiB ({', '.join(names)}); ", end="")
        print(f"with the checkout {total:.1f} of {MAX_MIB} MiB")
    write_json(OUT / "parts.json", {"parts": parts, "sizes": sizes}, indent=2)


if __name__ == "__main__":
    main()
