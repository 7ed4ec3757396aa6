"""Measures as values, runs scored by them, and what the differences between systems are worth."""

from truerank.measures.policy import Policy
from truerank.measures.results import Coverage, Evaluation, load_evaluation

__all__ = ["Coverage", "Evaluation", "Policy", "load_evaluation"]
