"""Where the parts of an input are annotated: processes of this machine, Ray or Spark.

An engine has a name, a number of workers and `map(start, parts)`, which yields each part with what
became of it, in order. All engines run the same function of the job on the same parts, so that
their outputs have the same bytes.
"""

from .batches import BatchAnnotator

__all__ = ["BatchAnnotator"]
