"""What the results of a sweep say: statistics, the papers' protocols, comparisons."""
