"""People, or models, judge what the audits propose.

The commands of the group, under one name: those of `truerank.judging`, and the three that also need an audit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from truerank.errors import OptionError
from truerank.judging.agreement import agreement
from truerank.judging.endpoints import Patience
from truerank.judging.exchange import export, import_
from truerank.judging.models import ChatModel, ModelRun, Only, judge_with_model
from truerank.judging.probes import Probing, probe_judge
from truerank.judging.samples import new
from truerank.judging.store import Store, store_change
from truerank.judging.tables import table
from truerank.judging.web import Desk, Serving, open_desk
from truerank.options import Flag, Options, Processes, Range, Seed, command
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress

if TYPE_CHECKING:
    from truerank.audits.assessors.audit import audit

__all__ = [
    "ActiveLearning", "Asking", "Probing", "Serving", "agreement", "audit", "export", "import_",
    "model", "new", "serve", "table",
]  # fmt: skip

#: The learner itself says how large a batch is.
_ANY = 1 << 20


def __getattr__(name: str) -> Any:
    """`audit`, imported on first use: it needs the measures, and the pages on which people judge do not."""
    if name != "audit":
        raise AttributeError(f"module 'truerank.judge' has no attribute {name!r}")
    from truerank.audits.assessors.audit import audit

    return audit


@dataclass(frozen=True)
class ActiveLearning(Options):
    """What is proposed where the pool ends.

    Attributes:
        pool: the store is a pool of documents; where it ends, a learner of the labels proposes further documents.
        docs: the collection of the pool.
        stopping: the rule by which a topic is judged enough: track, budget:N and so on. In Python also a rule.
        budget: judgments over all topics; by default without a bound.
        batch: documents between two trainings; by default 1, growing by a tenth.
        rel: the lowest grade that counts as relevant.
        regularisation: the learner's weight of the penalty, λ.
        index: where the index of the collection is kept; by default STORE.collection.
        seed: of the presumed non-relevant documents and of ties.
        workers: processes that analyse documents.
    """

    pool: bool = False
    docs: Annotated[str, Flag(metavar="SRC")] = ""
    stopping: Annotated[Any, Flag(metavar="RULE", reads=str)] = "track"
    budget: Annotated[int | None, Range(at_least=1)] = None
    batch: Annotated[int | None, Range(at_least=1)] = None
    rel: Annotated[int, Range(at_least=1)] = 1
    regularisation: Annotated[float, Range(above=0)] = 1e-4
    index: Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)] = None
    seed: Seed = 0
    workers: Processes = 1

    def __post_init__(self) -> None:
        """A pool needs its collection."""
        super().__post_init__()
        if self.pool and not self.docs:
            raise OptionError("pool", "no collection to propose documents from", "give `docs`")
        if self.docs and not self.pool:
            raise OptionError("docs", "a collection that nothing is proposed from", "give `pool` too")


@command
def serve(
    store: Annotated[str | Path, Flag(metavar="STORE", positional=True, reads=Path)],
    serving: Serving = Serving(),
    learning: ActiveLearning = ActiveLearning(),
    *,
    progress: Progress | None = None,
) -> Desk:
    """Serves the pages on which people judge, until Ctrl-C.

    Everybody needs an access token; new ones are printed once, as links that take their owners in, and only their
    hashes are kept. On an address of this machine, --no-tokens makes a name enough. In Python the pages are served by
    `run` of what is returned.

    Args:
        store: the store.
        serving: where, and for whom.
        learning: what is proposed where a pool ends.
        progress: receives the number of documents done.

    Returns:
        The desk: the port is taken, nobody is answered yet.

    Raises:
        InputError: no store, or one that does not grade documents for a pool; nobody of a name; the port is in use or
            the address is not this machine's; no such certificate; a fault in the documents or the stopping rule.
        MissingExtraError: Starlette or Uvicorn is not installed.

    Examples:

        truerank judge serve leakage.judged

        truerank judge serve leakage.judged --port 0 --no-tokens --adjudicators carol

        truerank judge serve leakage.judged --host 0.0.0.0 --certificate cert.pem --key key.pem

        truerank judge serve leakage.judged --allow-hosts judge.example --new-tokens ann

        truerank judge serve doc.judged --pool --docs corpus.jsonl --stopping track
    """
    if not learning.pool:
        return open_desk(store, serving)
    from truerank.audits.pool.active import LearnerOptions
    from truerank.audits.pool.assistant import pool_assistant

    first = 1 if learning.batch is None else learning.batch
    assistant = pool_assistant(
        store,
        learning.docs,
        rule=learning.stopping,
        budget=learning.budget,
        seed=learning.seed,
        learner=LearnerOptions(
            learning.rel, regularisation=learning.regularisation, batch=first, growing=learning.batch is None
        ),
        folder=learning.index,
        workers=learning.workers,
        progress=progress,
    )
    return open_desk(store, serving, proposer=assistant, batch=_ANY)


@dataclass(frozen=True)
class Asking(Options):
    """Which items the model is asked about.

    Attributes:
        only: all items, or those that a person has labelled, which is what agreement needs.
        max_items: at most so many items now.
        again: items that the model skipped are asked about again.
    """

    only: Only = "all"
    max_items: Annotated[int | None, Range(at_least=0)] = None
    again: bool = False


@command
def model(
    store: Annotated[str | Path | Store, Flag(metavar="STORE", positional=True, reads=Path)],
    chat: ChatModel = ChatModel(),
    patience: Patience = Patience(),
    asking: Asking = Asking(),
    *,
    probing: Probing = Probing(),
    as_: Annotated[str, Flag(metavar="NAME")] = "",
    progress: Progress | None = None,
) -> ModelRun:
    """Lets a model label items, as one annotator among others.

    A chat model is asked by a prompt made of the scheme; whatever is not exactly an answer is a skip with the reason.
    Items that the model has looked at before are not asked again, so the same command continues what was stopped. The
    labels are a model's everywhere; the agreement of annotators compares them with people's.

    With `probe` the model is asked about changed documents instead, in a store of their own: documents that people
    judged not relevant get the query's words, a claim or an instruction, relevant ones are cut or reworded. The result
    is the share of grades that move.

    Args:
        store: the store; in Python also an open one.
        chat: the chat model.
        patience: how often and how long it is asked.
        asking: which items it is asked about.
        probing: whether it is probed, and how.
        as_: the annotator's name, if not the model's.
        progress: receives progress updates.

    Returns:
        What was labelled, skipped, and could not be asked; STORE.model-HASH.manifest.json says with which settings.
        With `probe`, what the probes did.

    Raises:
        InputError: as for `judging.judge_with_model`; an endpoint, key or prompt that cannot be used.

    Examples:

        truerank judge model leakage.judged --endpoint http://127.0.0.1:8000/v1 --model NAME

        truerank judge model leakage.judged --endpoint https://HOST/v1 --model NAME --key-env MODEL_KEY --only labelled
        --max-items 100 --per-minute 60

        truerank judge model graded.judged --endpoint http://127.0.0.1:8000/v1 --model NAME --probe all
    """
    if probing and asking.only != "all":
        raise OptionError("only", "probes are made of documents that people graded", "leave it out")
    inputs = inputs_of(prompt=chat.prompt)
    options: dict[str, Any] = {"chat": replace(chat, prompt=None), "as": as_}
    options |= {"only": asking.only, "again": asking.again, **({"probing": probing} if probing else {})}
    more: dict[str, Any] = {"name": as_, "max_items": asking.max_items, "again": asking.again, "progress": progress}
    with store_change("judge model", store, inputs, options) as job:
        if probing:
            probed = probe_judge(store, probing, chat.judge(patience) if chat else None, **more)
            job.skipped = {"unanswered": probed.unanswered}
            return probed
        found = judge_with_model(store, chat.judge(patience), only=asking.only, **more)
        job.skipped = {**found.skipped, "failed": len(found.failed)}
    return found
