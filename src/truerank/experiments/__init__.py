"""Controlled experiments: training sets that differ only in a fault, grids of runs over them, reports."""
