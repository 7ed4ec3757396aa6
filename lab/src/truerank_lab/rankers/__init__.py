"""Networks that are drawn and trained here, and the training of all rankers."""
