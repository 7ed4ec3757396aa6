"""What the rankers on transformers share: checkpoints, rows of tokens, networks in torch."""
