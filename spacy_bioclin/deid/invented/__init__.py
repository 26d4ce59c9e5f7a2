"""Invented notes with gold PHI, to train a tagger on."""
