"""Formats of annotation tools: notes go out with what a pipeline found, and come back corrected."""
