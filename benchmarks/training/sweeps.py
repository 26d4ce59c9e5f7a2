"""Run a committed sweep and keep its figures, page and pictures.

    python -m benchmarks.training.sweeps carrino --jobs 2
    python -m benchmarks.training.sweeps stability --jobs 2

The same as `bioclin sweep configs/sweeps/NAME.yml`, in .work/benchmarks/sweeps, where it
resumes if interrupted; then benchmarks/results/sweep_NAME.json, .html and .svg are written.
"""

import os
import re
import subprocess
import sys

from benchmarks.harness import RESULTS, ROOT, WORK, data_dir, make_parser, read_json, write_result

# The task of each sweep whose picture is shown beside the figures.
PICTURES = {
    "carrino": "pharmaconer",
    "euadr": "euadr",
    "quaero": "quaero-emea",
    "stability": "pharmaconer",
}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("name", choices=sorted(PICTURES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report-only", action="store_true", help="report on the finished trials")
    arguments = parser.parse_args()
    name, out = arguments.name, WORK / "sweeps" / arguments.name
    command = [sys.executable, "-m", "spacy_bioclin", "sweep", f"configs/sweeps/{name}.yml"]
    more = ["--report-only"] if arguments.report_only else ["--jobs", str(arguments.jobs)]
    subprocess.run(
        [*command, "-o", str(out), *more],
        cwd=ROOT,
        env={**os.environ, "BIOCLIN_DATA": str(data_dir().resolve())},
        check=True,
    )
    print(write_result(f"sweep_{name}", read_json(out / "summary.json")))
    page = (out / "report.html").read_text("utf-8")
    (RESULTS / f"sweep_{name}.html").write_text(page, encoding="utf-8")
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    [picture] = [p for p in pictures if f">{PICTURES[name]}: " in p]
    (RESULTS / f"sweep_{name}.svg").write_text(picture + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
