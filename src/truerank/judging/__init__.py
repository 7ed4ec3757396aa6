"""Judging: people, or models, look at what the audits propose; what they say is kept as events."""

from truerank.judging.events import Annotator, Disagreement, Draft, Event, Progress, Standing
from truerank.judging.exchange import Exported, Imported, export_labels, import_labels
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item, Text
from truerank.judging.making import NewStore, People, new
from truerank.judging.proposers import Proposer
from truerank.judging.samples import Assignment, Drawn, assign, draw
from truerank.judging.schemes import Choice, Group, Scheme, load_scheme, versions_scheme
from truerank.judging.store import Store, is_store

__all__ = [
    "Annotator",
    "Assignment",
    "Choice",
    "Disagreement",
    "Draft",
    "Drawn",
    "Event",
    "Exported",
    "Group",
    "Imported",
    "Item",
    "NewStore",
    "People",
    "Progress",
    "Proposer",
    "Scheme",
    "Standing",
    "Store",
    "Text",
    "assign",
    "draw",
    "export_labels",
    "import_labels",
    "is_store",
    "load_scheme",
    "new",
    "read_items",
    "versions_scheme",
]
