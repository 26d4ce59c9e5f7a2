"""What a notebook shows of Docs: views for displaCy, and data frames of pandas."""

from .frames import to_dataframe
from .views import view_entities, view_relations, view_spans

__all__ = ["to_dataframe", "view_entities", "view_relations", "view_spans"]
