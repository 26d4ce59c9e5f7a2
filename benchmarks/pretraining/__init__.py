"""Benchmarks of pretraining, on what scripts/build_encoder.sh made."""

import os
from pathlib import Path

from benchmarks.harness import ROOT

# Where scripts/build_encoder.sh writes by default.
REBUILT = Path(os.environ.get("BIOCLIN_WORK", ROOT / "encoders")) / "rebuild"
