"""Entity linking: terminology readers, knowledge base, candidates, ranking, component, spaCy hooks."""
