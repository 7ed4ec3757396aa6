"""Judging: people, or models, look at what the audits propose; what they say is kept as events."""

from truerank.judging.items import Item, Text
from truerank.judging.schemes import Choice, Group, Scheme, load_scheme, versions_scheme
from truerank.judging.store import Annotator, Event, Progress, Standing, Store

__all__ = [
    "Annotator",
    "Choice",
    "Event",
    "Group",
    "Item",
    "Progress",
    "Scheme",
    "Standing",
    "Store",
    "Text",
    "load_scheme",
    "versions_scheme",
]
