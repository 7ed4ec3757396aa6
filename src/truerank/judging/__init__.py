"""Judging: people, or models, look at what the audits propose; what they say is kept as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

# At once, since modules have these names.
from truerank.judging.agreement import AnnotatorAgreement as AnnotatorAgreement
from truerank.judging.agreement import agreement as agreement
from truerank.judging.definitions import Definition as Definition
from truerank.judging.definitions import definitions as definitions
from truerank.judging.definitions import is_leak as is_leak
from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.judging.endpoints import Patience as Patience
    from truerank.judging.exchange import LabelExport as LabelExport
    from truerank.judging.exchange import LabelImport as LabelImport
    from truerank.judging.exchange import export as export
    from truerank.judging.exchange import import_ as import_
    from truerank.judging.item_sources import read_items as read_items
    from truerank.judging.items import Annotator as Annotator
    from truerank.judging.items import Disagreement as Disagreement
    from truerank.judging.items import Draft as Draft
    from truerank.judging.items import Event as Event
    from truerank.judging.items import Item as Item
    from truerank.judging.items import JudgingProgress as JudgingProgress
    from truerank.judging.items import Standing as Standing
    from truerank.judging.items import Text as Text
    from truerank.judging.labels import JudgedPair as JudgedPair
    from truerank.judging.labels import Judgments as Judgments
    from truerank.judging.labels import open_judgments as open_judgments
    from truerank.judging.models import ChatModel as ChatModel
    from truerank.judging.models import Judge as Judge
    from truerank.judging.models import ModelRun as ModelRun
    from truerank.judging.models import judge_with_model as judge_with_model
    from truerank.judging.ratings import VOTES as VOTES
    from truerank.judging.ratings import Rating as Rating
    from truerank.judging.ratings import Ratings as Ratings
    from truerank.judging.ratings import Unit as Unit
    from truerank.judging.ratings import read_ratings as read_ratings
    from truerank.judging.samples import Assignment as Assignment
    from truerank.judging.samples import ItemSample as ItemSample
    from truerank.judging.samples import NewStore as NewStore
    from truerank.judging.samples import People as People
    from truerank.judging.samples import Proposer as Proposer
    from truerank.judging.samples import assign as assign
    from truerank.judging.samples import draw as draw
    from truerank.judging.samples import new as new
    from truerank.judging.schemes import Choice as Choice
    from truerank.judging.schemes import Group as Group
    from truerank.judging.schemes import Scheme as Scheme
    from truerank.judging.schemes import load_scheme as load_scheme
    from truerank.judging.schemes import versions_scheme as versions_scheme
    from truerank.judging.store import Store as Store
    from truerank.judging.store import is_store as is_store
    from truerank.judging.tables import LabelCounts as LabelCounts
    from truerank.judging.tables import table as table
    from truerank.options import Votes as Votes
else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]
