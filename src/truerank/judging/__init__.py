"""Judging: people, or models, look at what the audits propose; what they say is kept as events."""

from truerank.judging.agreement import agreement
from truerank.judging.agreement_results import Agreement
from truerank.judging.definitions import Definition, definitions, is_leak
from truerank.judging.endpoints import Patience
from truerank.judging.events import Annotator, Disagreement, Draft, Event, Progress, Standing
from truerank.judging.exchange import Exported, Imported, export_labels, import_labels
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item, Text
from truerank.judging.labels import JudgedPair, Judgments, open_judgments
from truerank.judging.making import NewStore, People, new
from truerank.judging.models import Judge, ModelRun, ScoreJudge, ask_model, judge_with_model
from truerank.judging.proposers import Proposer
from truerank.judging.rating_table import Rating, Ratings, Unit
from truerank.judging.ratings import read_ratings
from truerank.judging.samples import Assignment, Drawn, assign, draw
from truerank.judging.schemes import Choice, Group, Scheme, load_scheme, versions_scheme
from truerank.judging.store import Store, is_store
from truerank.judging.tables import LabelTables, label_tables
from truerank.judging.votes import VOTES, Votes

__all__ = [
    "VOTES",
    "Agreement",
    "Annotator",
    "Assignment",
    "Choice",
    "Definition",
    "Disagreement",
    "Draft",
    "Drawn",
    "Event",
    "Exported",
    "Group",
    "Imported",
    "Item",
    "Judge",
    "JudgedPair",
    "Judgments",
    "LabelTables",
    "ModelRun",
    "NewStore",
    "Patience",
    "People",
    "Progress",
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
    "ask_model",
    "assign",
    "definitions",
    "draw",
    "export_labels",
    "import_labels",
    "is_leak",
    "is_store",
    "judge_with_model",
    "label_tables",
    "load_scheme",
    "new",
    "open_judgments",
    "read_items",
    "read_ratings",
    "versions_scheme",
]
