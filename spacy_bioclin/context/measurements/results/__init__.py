"""Results of tests: a name with its value, unit, reference range and flag."""
