"""Can a model's judgments stand in for people's?

Agreement, the order of systems, families that a model favours, and a verdict for each use of a model's grades.

Source: Rahmani et al.: Judging the Judges: A Collection of LLM-Generated Relevance Judgements (2025).
"""

from truerank.audits.assessors.audit import AssessorAudit, Grading, audit
from truerank.audits.assessors.correction import CorrectedScores, corrected_scores
from truerank.audits.assessors.grades import Grades, OutsideGrade, Voice, read_grades, read_voices
from truerank.audits.assessors.options import AssessorRules, Outside
from truerank.audits.assessors.order import FamilySource, SystemScores
from truerank.audits.assessors.sampling_designs import Correcting, LabelPlan, label_plan
from truerank.audits.assessors.verdicts import UseVerdict, verdicts_of

__all__ = [
    "AssessorAudit", "AssessorRules", "CorrectedScores", "Correcting", "FamilySource", "Grades", "Grading", "LabelPlan",
    "Outside", "OutsideGrade", "SystemScores", "UseVerdict", "Voice", "audit", "corrected_scores", "label_plan",
    "read_grades", "read_voices", "verdicts_of",
]  # fmt: skip
