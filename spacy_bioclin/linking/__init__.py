"""Entity linking: terminology readers, knowledge base, candidates, ranking, hooks for spaCy."""
