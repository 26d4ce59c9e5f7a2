"""Find measurements in text by rules that are data: no spaCy."""
