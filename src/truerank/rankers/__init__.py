"""Rankers: texts of queries and documents in, scores out; reranking a run."""
