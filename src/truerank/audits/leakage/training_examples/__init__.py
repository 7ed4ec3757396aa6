"""Which test queries, documents and answers stand in whole training examples.

The command is `leakage examples`: it compares the texts of training examples (queries, positives, negatives) with the
queries and documents of a test collection, and gives each kind of leak a verdict of its own.
"""
