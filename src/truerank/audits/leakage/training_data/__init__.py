"""Which test queries, documents and answers stand in whole training data.

`leakage examples` compares the texts of training examples (queries, positives, negatives) with a test collection, by
kinds of leak; `leakage matrix` compares each training set of a suite with each test set, cell by cell.
"""
