"""What an attack found: cases by subject."""
