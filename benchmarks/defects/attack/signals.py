"""Commands that are interrupted, and what they leave for --resume."""

import json

from benchmarks.defects.case import Seen, Tree, case

N = 1500
# Starts `bioclin deid`, waits for its first finished part, and sends a signal. Prints JSON.
DRIVER = """
import json, os, pathlib, signal, subprocess, sys, time

def members(session):
    found = 0
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, _, its = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        found += int(its) == session and state != "Z"
    return found

number, group, wait, *command = sys.argv[1:]
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)  # a shell lets jobs in the background ignore them
process = subprocess.Popen(
    [sys.executable, "-W", "ignore", "-m", "spacy_bioclin", *command],
    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    start_new_session=True, text=True,
)
if wait == "part":
    while process.poll() is None and not list(pathlib.Path().glob(".out.jsonl.work/*.part")):
        time.sleep(0.01)
else:
    time.sleep(float(wait))
(os.killpg if group == "group" else os.kill)(process.pid, int(number))
sent = time.monotonic()
try:
    _, err = process.communicate(timeout=30)
except subprocess.TimeoutExpired:
    os.killpg(process.pid, signal.SIGKILL)
    _, err = process.communicate()
took = time.monotonic() - sent
time.sleep(0.5)
left = members(process.pid)
if left:
    os.killpg(process.pid, signal.SIGKILL)
lines = [line for line in err.splitlines() if not line.startswith("warning")]
print(json.dumps({
    "status": process.returncode,
    "lines": len(lines),
    "last": lines[-1][-120:] if lines else "",
    "processes_left": left,
    "over_3_s": took > 3,
}))
"""


def write_notes(tree: Tree) -> None:
    texts = (f"Paciente Juan Pérez, NHC {37 * i}, visto el 3/4/20{i % 25:02}." for i in range(N))
    tree.write("notes.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))


def interrupt(tree: Tree, number: int, group: str, wait: str, *options: str) -> dict[str, object]:
    write_notes(tree)
    command = ("deid", "notes.jsonl", "out.jsonl", "--lang", "es", *options)
    done = tree.python("-c", DRIVER, number, group, wait, *command)
    seen: dict[str, object] = json.loads(done.out)
    return seen


def is_clean(seen: dict[str, object], status: int) -> bool:
    expected = {"status": status, "lines": 1, "processes_left": 0, "over_3_s": False}
    return all(seen[name] == value for name, value in expected.items())


@case(7, "Ctrl-C in a terminal ends two processes with one line that says how to go on.")
def ctrl_c_with_two_processes(tree: Tree) -> Seen:
    seen = interrupt(tree, 2, "group", "part", "--processes", "2")
    return Seen(is_clean(seen, 130) and "--resume" in str(seen["last"]), seen)


@case(7, "SIGINT to the main process alone ends its workers at once.")
def sigint_to_the_main_process(tree: Tree) -> Seen:
    seen = interrupt(tree, 2, "main", "part", "--processes", "2")
    return Seen(is_clean(seen, 130) and "--resume" in str(seen["last"]), seen)


@case(7, "Ctrl-C in one process says what is kept and how to go on.")
def ctrl_c_with_one_process(tree: Tree) -> Seen:
    seen = interrupt(tree, 2, "group", "part")
    return Seen(is_clean(seen, 130) and "--resume" in str(seen["last"]), seen)


@case(7, "SIGTERM ends a run with one line and status 143.")
def sigterm(tree: Tree) -> Seen:
    seen = interrupt(tree, 15, "main", "part", "--processes", "2")
    return Seen(is_clean(seen, 143) and "--resume" in str(seen["last"]), seen)


@case(7, "A terminal that closes ends a run with one line and status 129.")
def sighup(tree: Tree) -> Seen:
    seen = interrupt(tree, 1, "group", "part", "--processes", "2")
    return Seen(is_clean(seen, 129) and "--resume" in str(seen["last"]), seen)


@case(7, "Ctrl-C while the command imports its libraries prints no traceback.")
def ctrl_c_at_start(tree: Tree) -> Seen:
    seen = interrupt(tree, 2, "group", "0.8")
    return Seen(is_clean(seen, 130), seen)


def resume_after(tree: Tree, damage: str) -> Seen:
    """Kill a run, damage what it left, resume it, and compare with a run that was not killed.

    damage (str): Python code; `folder` is the work folder, `part` its first part.
    """
    interrupt(tree, 9, "group", "part", "--processes", "1")
    code = (
        "import json, pathlib\n"
        "folder = pathlib.Path('.out.jsonl.work')\n"
        "part = sorted(folder.glob('*.part'))[0]\n" + damage
    )
    tree.python("-c", code)
    done = tree.bioclin("deid", "notes.jsonl", "out.jsonl", "--lang", "es", "--resume")
    tree.bioclin("deid", "notes.jsonl", "whole.jsonl", "--lang", "es")
    out, whole = tree.folder / "out.jsonl", tree.folder / "whole.jsonl"
    written = out.read_bytes().count(b"\n") if out.exists() else 0
    same = out.exists() and out.read_bytes() == whole.read_bytes()
    seen = {"status": done.code, "traceback": done.crashed, "notes": f"{written} of {N}"}
    return Seen(same and not done.crashed, {**seen, "same_bytes": same})


@case(6, "A part cut at the end of a line loses no note.")
def a_part_cut_at_a_line_end(tree: Tree) -> Seen:
    damage = "part.write_bytes(b''.join(part.read_bytes().splitlines(keepends=True)[:-50]))"
    return resume_after(tree, damage)


@case(6, "A part with a changed byte is not used.")
def a_part_with_a_changed_byte(tree: Tree) -> Seen:
    damage = "data = bytearray(part.read_bytes()); data[-20] ^= 1; part.write_bytes(data)"
    return resume_after(tree, damage)


@case(6, "An empty part is made again.")
def an_empty_part(tree: Tree) -> Seen:
    return resume_after(tree, "part.write_bytes(b'')")


@case(6, "A manifest that is cut is no reason for a traceback, and loses nothing.")
def a_manifest_that_is_cut(tree: Tree) -> Seen:
    return resume_after(tree, "m = folder / 'manifest.json'; m.write_bytes(m.read_bytes()[:20])")


@case(6, "A manifest that is a list is no reason for a traceback, and loses nothing.")
def a_manifest_that_is_a_list(tree: Tree) -> Seen:
    return resume_after(tree, "(folder / 'manifest.json').write_text('[1]')")


@case(8, "A key that an editor saved as UTF-16 is not silently another key.")
def a_key_in_utf_16(tree: Tree) -> Seen:
    tree.write("key", ("Zm9vYmFyYmF6cXV4" * 2 + "\n").encode("utf-16"))
    tree.write("policy.yml", "default: hash\n")
    tree.write("note.txt", "NHC 1234567")
    options = ("--lang", "es", "--policy", "policy.yml", "--key-file", "key")
    done = tree.bioclin("deid", "note.txt", "out.txt", *options)
    return Seen(done.code == 1 and not done.crashed and "UTF-16" in done.text, done.text[-120:])


@case(8, "An error of a library ends a command with one line, without text of its message.")
def an_unexpected_error(tree: Tree) -> Seen:
    code = (
        "import sys\n"
        "from spacy_bioclin.cli import app\n"
        "import spacy_bioclin.deid.secret as secret\n"
        "def fail():\n"
        "    raise ValueError('Marta Olmedo')\n"
        "secret.make_key = fail\n"
        "sys.argv = ['bioclin', 'deid-key', 'key']\n"
        "app()\n"
    )
    done = tree.python("-c", code)
    quoted = "Marta" in done.text
    return Seen(done.code == 1 and not done.crashed and not quoted, {"quoted": quoted})
