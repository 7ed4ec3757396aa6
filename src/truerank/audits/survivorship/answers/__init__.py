"""Can the discarded queries be answered: pools for them, and what was found there."""
