"""The survivorship audit: which queries did the annotation discard, and what does that do to scores and models?

    propose   discarded queries, the kinds of query that are missing, the passages behind them
    judge     why a query was unanswered, and whether it can be answered
    estimate  discarded shares by kind and depth, judgments at every simulated depth
    act       restore depth, filter training triples
    measure   scores and trained rankers by depth

Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.lazy import lazily

if TYPE_CHECKING:
    from truerank.audits.survivorship.answer_pools import AnswerPool as AnswerPool
    from truerank.audits.survivorship.answer_pools import AnswerPoolOptions as AnswerPoolOptions
    from truerank.audits.survivorship.answer_pools import DiscardedQueries as DiscardedQueries
    from truerank.audits.survivorship.answers import Answerable as Answerable
    from truerank.audits.survivorship.answers import AnswerCountOptions as AnswerCountOptions
    from truerank.audits.survivorship.answers import CorpusAnswers as CorpusAnswers
    from truerank.audits.survivorship.answers import answerable as answerable
    from truerank.audits.survivorship.depths import DepthOptions as DepthOptions
    from truerank.audits.survivorship.depths import Depths as Depths
    from truerank.audits.survivorship.depths import depth as depth
    from truerank.audits.survivorship.evaluation import DepthEvaluation as DepthEvaluation
    from truerank.audits.survivorship.evaluation import EvaluateOptions as EvaluateOptions
    from truerank.audits.survivorship.evaluation import evaluate as evaluate
    from truerank.audits.survivorship.mapping import MapOptions as MapOptions
    from truerank.audits.survivorship.mapping import PassageMap as PassageMap
    from truerank.audits.survivorship.mapping import map as map  # noqa: A004
    from truerank.audits.survivorship.profiles import Profile as Profile
    from truerank.audits.survivorship.profiles import ProfileOptions as ProfileOptions
    from truerank.audits.survivorship.profiles import profile as profile
    from truerank.audits.survivorship.queries import Kinds as Kinds
    from truerank.audits.survivorship.queries import independence as independence
    from truerank.audits.survivorship.training_triples import Triples as Triples
    from truerank.audits.survivorship.training_triples import TriplesOptions as TriplesOptions
    from truerank.audits.survivorship.training_triples import triples as triples

else:
    __getattr__, __dir__ = lazily(__name__, __file__)
    __all__ = [*__dir__()]
