"""First-stage retrieval."""
