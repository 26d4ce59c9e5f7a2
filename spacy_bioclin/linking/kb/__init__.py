"""The knowledge base on disk: built from terminologies, opened memory-mapped."""

from .knowledge_base import KnowledgeBase

__all__ = ["KnowledgeBase"]
