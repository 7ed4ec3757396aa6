"""Are my test queries in my training data?

    propose   neighbours of every topic text among the training queries, with their reformulation types
    judge     labels that people gave to the pairs
    estimate  topics and queries that leak, what was missed, verdicts, thresholds
    act       clean the training set or the test set
    measure   scores with and without the leaked topics

Source: Fröbe, Akiki, Potthast, Hagen: How Train–Test Leakage Affects Zero-shot Retrieval (SPIRE 2022).
"""

from __future__ import annotations

from truerank.audits.leakage.audit import audit
from truerank.audits.leakage.baseline import NewSince, since_baseline
from truerank.audits.leakage.calibration import Calibration
from truerank.audits.leakage.clean import Cleaning, LeakRules, TrainCleaning
from truerank.audits.leakage.commands import CleaningSide, calibrate, clean
from truerank.audits.leakage.effect import Effect, effect
from truerank.audits.leakage.guard import DroppedRow, GuardReport, LeakageGuard, guard
from truerank.audits.leakage.kinds import DocumentOptions, KindVerdict, kinds_of
from truerank.audits.leakage.options import AuditOptions, Redaction
from truerank.audits.leakage.redaction import open_key, redact
from truerank.audits.leakage.reduction import TestReduction
from truerank.audits.leakage.results import AuditResult, load_audit

__all__ = [
    "AuditOptions",
    "AuditResult",
    "Calibration",
    "Cleaning",
    "CleaningSide",
    "DocumentOptions",
    "DroppedRow",
    "Effect",
    "GuardReport",
    "KindVerdict",
    "LeakRules",
    "LeakageGuard",
    "NewSince",
    "Redaction",
    "TestReduction",
    "TrainCleaning",
    "audit",
    "calibrate",
    "clean",
    "effect",
    "guard",
    "kinds_of",
    "load_audit",
    "open_key",
    "redact",
    "since_baseline",
]
