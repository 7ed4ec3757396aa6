"""The collection audit: are the documents, topics and judgments of a test collection sound?

    propose   faults of judgments, documents and topics, alone and together; changes between two versions
    judge     groups of near-duplicates and contradictory grades
    estimate  a verdict for each part, and the share of real duplicates by similarity
    act       judgments closed under equivalence, lists of exclusions and duplicates
    measure   scores and order of runs before and after, beside random changes of the same size

Source: Bernstein and Zobel (SIGIR 2005); Fröbe et al. (ECIR 2020).
"""

from __future__ import annotations

from truerank.audits.collection.audit import audit
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.repairs import CollectionCleaning, clean
from truerank.audits.collection.results import CollectionAudit, CollectionFinding, load_audit
from truerank.core.rules import RuleChoice

__all__ = [
    "CollectionAudit", "CollectionCleaning", "CollectionFinding", "CollectionOptions", "Parts",
    "RuleChoice", "audit", "clean", "load_audit",
]  # fmt: skip
