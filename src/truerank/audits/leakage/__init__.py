"""Are my test queries in my training data?

    propose   neighbours of every topic text among the training queries, with their reformulation types
    judge     labels that people gave to the pairs
    estimate  topics and queries that leak, what was missed, verdicts, thresholds
    act       clean the training set or the test set, state what was found
    measure   scores with and without the leaked topics

Source: Fröbe, Akiki, Potthast, Hagen: How Train–Test Leakage Affects Zero-shot Retrieval (SPIRE 2022).
"""

from truerank.audits.leakage.audit import audit
from truerank.audits.leakage.baseline import NewSince, since_baseline
from truerank.audits.leakage.calibration_results import Calibration
from truerank.audits.leakage.card import Card, card
from truerank.audits.leakage.cleaning import Cleaning, LeakRules, TrainCleaning
from truerank.audits.leakage.commands import Spread, calibrate, clean
from truerank.audits.leakage.demo import DemoResult, demo
from truerank.audits.leakage.effect import Effect, difference_sds, effect
from truerank.audits.leakage.guarding import DroppedRow, GuardReport, LeakageGuard, guard
from truerank.audits.leakage.model_labels import EncoderJudge, judge_with_encoder
from truerank.audits.leakage.options import AuditOptions, CardTarget, Redaction
from truerank.audits.leakage.redaction import open_key, redact
from truerank.audits.leakage.reduction import TestReduction
from truerank.audits.leakage.results import AuditResult, load_audit

__all__ = [
    "AuditOptions",
    "AuditResult",
    "Calibration",
    "Card",
    "CardTarget",
    "Cleaning",
    "DemoResult",
    "DroppedRow",
    "Effect",
    "EncoderJudge",
    "GuardReport",
    "LeakRules",
    "LeakageGuard",
    "NewSince",
    "Redaction",
    "Spread",
    "TestReduction",
    "TrainCleaning",
    "audit",
    "calibrate",
    "card",
    "clean",
    "demo",
    "difference_sds",
    "effect",
    "guard",
    "judge_with_encoder",
    "load_audit",
    "open_key",
    "redact",
    "since_baseline",
]
