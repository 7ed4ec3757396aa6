"""A package that adds to truerank without changing it: one thing of each kind."""
