"""From the scores of several runs to the one number that a paper prints."""

from .folds import FoldsScore as FoldsScore
from .folds import folds_median as folds_median
from .runs import RunsScore as RunsScore
from .runs import best_of_seeds as best_of_seeds
from .runs import mean_over_all as mean_over_all
from .runs import mean_sd as mean_sd
from .runs import median_of_seeds as median_of_seeds
from .runs import summarize_runs as summarize_runs
