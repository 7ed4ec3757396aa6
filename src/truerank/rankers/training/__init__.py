"""Training rankers: instances, recipes, one epoch, and the ranker with what it was made from."""
