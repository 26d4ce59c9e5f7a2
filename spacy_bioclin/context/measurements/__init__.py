"""Find quantities, times and dates in notes, with their values and UCUM units."""
