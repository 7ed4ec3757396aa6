"""Can a model's judgments stand in for people's?

Agreement, the order of systems, families that a model favours, and a verdict for each use of a model's grades.

Source: Rahmani et al.: Judging the Judges: A Collection of LLM-Generated Relevance Judgements (2025).
"""

from truerank.audits.assessors.auditing import Grading, audit
from truerank.audits.assessors.families import FamilySource
from truerank.audits.assessors.grades import Grades, OutsideGrade, Voice, read_grades, read_voices
from truerank.audits.assessors.options import AssessorRules, Outside
from truerank.audits.assessors.ordering import SystemScores
from truerank.audits.assessors.results import AssessorAudit
from truerank.audits.assessors.verdicts import UseVerdict, verdicts_of

__all__ = [
    "AssessorAudit",
    "AssessorRules",
    "FamilySource",
    "Grades",
    "Grading",
    "Outside",
    "OutsideGrade",
    "SystemScores",
    "UseVerdict",
    "Voice",
    "audit",
    "read_grades",
    "read_voices",
    "verdicts_of",
]
