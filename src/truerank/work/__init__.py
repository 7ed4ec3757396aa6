"""Blocks that resume, engines that run them, artifacts with their provenance, progress."""
