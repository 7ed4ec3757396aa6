"""The leakage audit: are my test queries in my training data?

    propose   neighbours of every topic text among the training queries, with their reformulation types
    judge     labels that people gave to the pairs
    estimate  topics and queries that leak, what was missed, verdicts, thresholds
    act       clean the training set or the test set, state what was found
    measure   scores with and without the leaked topics

Source: Fröbe, Akiki, Potthast, Hagen: How Train–Test Leakage Affects Zero-shot Retrieval (SPIRE 2022).
"""

from truerank.audits.leakage.audit import audit
from truerank.audits.leakage.baseline import NewSince, since_baseline
from truerank.audits.leakage.calibration import calibrate, similarities
from truerank.audits.leakage.calibration_results import Calibration
from truerank.audits.leakage.card import Card, card
from truerank.audits.leakage.cleaning import Cleaning, clean
from truerank.audits.leakage.demo import demo
from truerank.audits.leakage.effect import Effect, difference_sds, effect
from truerank.audits.leakage.model_labels import EncoderJudge, judge_with_encoder
from truerank.audits.leakage.neighbours import fails, neighbours_table
from truerank.audits.leakage.options import Options
from truerank.audits.leakage.redaction import open_key, redact
from truerank.audits.leakage.reduction import Reduction, detectable_difference, reduce_topics
from truerank.audits.leakage.report import to_text
from truerank.audits.leakage.results import AuditResult, load_audit

__all__ = [
    "AuditResult",
    "Calibration",
    "Card",
    "Cleaning",
    "Effect",
    "EncoderJudge",
    "NewSince",
    "Options",
    "Reduction",
    "audit",
    "calibrate",
    "card",
    "clean",
    "demo",
    "detectable_difference",
    "difference_sds",
    "effect",
    "fails",
    "judge_with_encoder",
    "load_audit",
    "neighbours_table",
    "open_key",
    "redact",
    "reduce_topics",
    "similarities",
    "since_baseline",
    "to_text",
]
