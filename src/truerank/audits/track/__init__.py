"""The analysis of a track: runs before it (candidates, validation, topics) and after it.

Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track (TREC 2019).
"""

from truerank.audits.track.candidates import Candidates, candidates
from truerank.audits.track.checking import Limits
from truerank.audits.track.faults import KINDS, Fault
from truerank.audits.track.selecting import Selection, TopicRow, select_topics
from truerank.audits.track.validating import RunCheck, Validation, validate

__all__ = [
    "KINDS",
    "Candidates",
    "Fault",
    "Limits",
    "RunCheck",
    "Selection",
    "TopicRow",
    "Validation",
    "candidates",
    "select_topics",
    "validate",
]
