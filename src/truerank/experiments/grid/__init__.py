"""Grids of trainings: a design file is read, costed, expanded into cells, and run so that no cell is run twice."""
