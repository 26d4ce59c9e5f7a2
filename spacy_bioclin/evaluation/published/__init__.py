"""Scores as the papers publish them, by the name that the catalogue's tasks use."""

from .scoring import TaskScoring as TaskScoring
from .scoring import make_scoring as make_scoring
from .table import METRICS as METRICS
from .table import PublishedMetric as PublishedMetric
from .table import find_metric as find_metric
