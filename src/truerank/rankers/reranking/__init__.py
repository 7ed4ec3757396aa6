"""Putting runs in a ranker's order: documents cut into passages, scores that are kept."""
