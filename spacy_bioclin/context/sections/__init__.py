"""Find the headings of clinical notes, and the sections that they open."""
