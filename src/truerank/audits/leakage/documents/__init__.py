"""What a test set has in the documents of training data: positives, negatives and answers of examples."""
