"""Suggest which notes to annotate next, and which gold spans look wrong."""
