"""How a drug is given, and whether it is taken, as its sentence says."""
