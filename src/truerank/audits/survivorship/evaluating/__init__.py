"""Scores by the depth of annotation: measures, tests and the report."""
