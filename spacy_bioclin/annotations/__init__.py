"""What Docs carry besides entities: relations, and pairs of texts."""
