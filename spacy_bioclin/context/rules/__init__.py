"""`bioclin_context`: negated, uncertain, historical, hypothetical, family: rules as data."""
