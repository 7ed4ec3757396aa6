"""Grids of trainings: a design is expanded into cells, which are run so that no cell is run twice."""
