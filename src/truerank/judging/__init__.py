"""Judging: people, or models, look at what the audits propose; what they say is kept as events."""

from truerank.judging.agreement import AnnotatorAgreement, agreement
from truerank.judging.definitions import Definition, definitions, is_leak
from truerank.judging.endpoints import Patience
from truerank.judging.exchange import LabelExport, LabelImport, export, import_
from truerank.judging.item_sources import read_items
from truerank.judging.items import Annotator, Disagreement, Draft, Event, Item, JudgingProgress, Standing, Text
from truerank.judging.labels import JudgedPair, Judgments, open_judgments
from truerank.judging.models import ChatModel, Judge, ModelRun, ScoreJudge, judge_with_model
from truerank.judging.ratings import VOTES, Rating, Ratings, Unit, Votes, read_ratings
from truerank.judging.samples import Assignment, ItemSample, NewStore, People, Proposer, assign, draw, new
from truerank.judging.schemes import Choice, Group, Scheme, load_scheme, versions_scheme
from truerank.judging.store import Store, is_store
from truerank.judging.tables import LabelCounts, table

__all__ = [
    "VOTES",
    "Annotator",
    "AnnotatorAgreement",
    "Assignment",
    "ChatModel",
    "Choice",
    "Definition",
    "Disagreement",
    "Draft",
    "Event",
    "Group",
    "Item",
    "ItemSample",
    "Judge",
    "JudgedPair",
    "JudgingProgress",
    "Judgments",
    "LabelCounts",
    "LabelExport",
    "LabelImport",
    "ModelRun",
    "NewStore",
    "Patience",
    "People",
    "Proposer",
    "Rating",
    "Ratings",
    "Scheme",
    "ScoreJudge",
    "Standing",
    "Store",
    "Text",
    "Unit",
    "Votes",
    "agreement",
    "assign",
    "definitions",
    "draw",
    "export",
    "import_",
    "is_leak",
    "is_store",
    "judge_with_model",
    "load_scheme",
    "new",
    "open_judgments",
    "read_items",
    "read_ratings",
    "table",
    "versions_scheme",
]
