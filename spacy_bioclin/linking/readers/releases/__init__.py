"""Releases of terminologies: folders or archives of several files, and files of a fixed layout."""
