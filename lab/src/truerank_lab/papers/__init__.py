"""The data of the papers' experiments in small, and how they are run."""
