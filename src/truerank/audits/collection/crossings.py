"""Whether what belongs to topics fits others better, by one rule: judgments beside runs, runs beside other runs.

A *crossing* says how well what stands under each topic fits each other one. A rule leads from a topic to the one so
many places on, in the order of the file, of the ids, or of the numbers in them. All topics *moved* if a rule leads most
of them to topics that they fit better, and not the mirrored rule: where neighbours are alike, both do. Some moved if
they stand next to each other and, together, fit the neighbours far better than topics anywhere else fit any.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats, Ints

#: Fewer topics than that show nothing.
FEWEST: Final = 10
#: The level of each test.
LEVEL: Final = 0.001
#: A rule fits so many times as well as the mirrored one.
_MIRROR: Final = 2
#: Steps that some topics may have moved by, and others in which chance shows how far it goes.
_STEPS, _FAR = (-1, 1, -2, 2), 40
#: What topics of a block fit the others more, in all, which is so many times what chance shows; so many fit them more,
#: and so many times as many as fit them less.
_GAIN, _TIMES, _BLOCK, _AGAINST = 1.0, 2.0, 4, 4
_NUMBER: Final = re.compile(r"(.*?)(\d{1,15})")


def natural(identifier: str) -> tuple[str, int, str]:
    """What ids are sorted by: their stem, then their number."""
    number = _NUMBER.fullmatch(identifier)
    return (number[1], int(number[2]), identifier) if number else (identifier, 0, identifier)


class Shift(NamedTuple):
    """A rule that topics have moved by.

    Attributes:
        leads: the column to which the rule leads each row; -1 for none.
        moved: the rows that have moved.
        gain: how much better they fit these columns, in all.
    """

    order: str
    offset: int
    leads: Ints
    moved: Ints
    gain: float
    p: float | None = None

    @property
    def where(self) -> str:
        """The topic that the rule leads to, in words."""
        size, way = abs(self.offset), "after" if self.offset > 0 else "before"
        there = f"the topic {'just' if size == 1 else f'{size:,d} places'} {way} it"
        here = f", {size:,d} further {'on' if self.offset > 0 else 'back'}" if size else ""
        by = {
            "number": f"the topic whose number is {size:,d} {'higher' if self.offset > 0 else 'lower'}",
            "order of ids": f"{there} in the order of ids",
            "file": f"{there} in the file of topics",
            "run": f"{there} in the order of the run",
            "number as place": f"the topic whose place among the topics the id counts{here}",
        }
        return by[self.order]


def laid(frame: pl.DataFrame, topics: Sequence[str], documents: pl.Enum) -> scipy.sparse.csr_matrix:
    """The gains of some documents under some topics (topic_id, doc_id, gain), shape (topics, documents)."""
    topic, doc = (
        frame[key].cast(kind, strict=False).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        for key, kind in (("topic_id", pl.Enum(topics)), ("doc_id", documents))
    )
    known = (topic >= 0) & (doc >= 0)
    entries = frame["gain"].cast(pl.Float64).to_numpy()[known], (topic[known], doc[known])
    return scipy.sparse.csr_matrix(entries, shape=(len(topics), len(documents.categories)))


class Crossing(NamedTuple):
    """How well what belongs to each of some topics, by row, fits each of others, by column; 0 where it does not.

    Attributes:
        given: what the order of the columns is that of: "file" or "run".
        others: to how many other columns each row is compared.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: scipy.sparse.csr_matrix
    given: str
    others: Ints

    @classmethod
    def of(cls, mine: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str], given: str) -> Crossing:
        """The sums over documents of the products of what both give them: topic_id, doc_id, gain."""
        rows = sorted(mine["topic_id"].unique().to_list(), key=natural)
        documents = pl.Enum(mine["doc_id"].unique())
        product = laid(mine, rows, documents) @ laid(theirs, columns, documents).T
        return cls(rows, columns, scipy.sparse.csr_matrix(product), given, np.full(len(rows), len(columns) - 1))

    def without(self, which: Crossing) -> Crossing:
        """The same without other topics for which another crossing has something."""
        left = self.values - self.values.multiply(which.values > 0)
        own, at = self.own, np.arange(len(self.rows))
        there = own >= 0
        held = scipy.sparse.csr_matrix((self.by(own)[there], (at[there], own[there])), shape=left.shape)
        left = scipy.sparse.csr_matrix(left - left.multiply(held > 0) + held)
        left.eliminate_zeros()
        related = np.diff(which.values.indptr) - (which.by(own) > 0)
        return self._replace(values=left, others=self.others - related)

    def kept(self, rows: Ints) -> Crossing:
        """Some of the rows."""
        return self._replace(rows=[self.rows[row] for row in rows], values=self.values[rows], others=self.others[rows])

    @property
    def own(self) -> Ints:
        """The column of each row; -1 for none."""
        place = {one: at for at, one in enumerate(self.columns)}
        return np.array([place.get(one, -1) for one in self.rows], np.int64)

    def by(self, leads: Ints) -> Floats:
        """What rows have at the columns to which something leads them; 0 where nothing does."""
        found = np.asarray(self.values[np.arange(len(leads)), np.maximum(leads, 0)]).ravel()
        return np.where(leads >= 0, found, 0.0)

    def places(self) -> Floats:
        """The share of the other columns that each row fits less than its own, ties counted half."""
        own = self.by(self.own)
        of, size = np.repeat(own, np.diff(self.values.indptr)), self.values.shape
        row = np.repeat(np.arange(size[0]), np.diff(self.values.indptr))
        more, same = (np.bincount(row[one], minlength=size[0]) for one in (
            self.values.data > of + 1e-9, np.abs(self.values.data - of) <= 1e-9))  # fmt: skip
        same = np.where(own > 0, same - 1, self.others - more)
        return np.asarray(1 - (more + same / 2) / np.maximum(1, self.others))

    def orders(self) -> Mapping[str, tuple[Floats, Floats]]:
        """The places of rows and columns in each order; nan for none."""
        ids = sorted({*self.rows, *self.columns} if self.own.min(initial=0) < 0 else self.columns, key=natural)
        orders = dict[str, tuple[Any, Any]]()
        often = Counter(natural(one)[0] for one in self.columns if _NUMBER.fullmatch(one))
        stem = max(often, key=lambda one: often[one], default="")

        def number(one: str) -> float:
            found = natural(one)
            return float(found[1]) if found[0] == stem and _NUMBER.fullmatch(one) else np.nan

        count = np.arange(float(len(self.columns)))
        columns = self.columns
        orders["number"] = [number(one) for one in self.rows], [number(one) for one in columns]
        for name, order in (("order of ids", ids), (self.given, columns)):
            at = {one: float(place) for place, one in enumerate(order)}
            if name == "order of ids" or list(columns) != ids:
                orders[name] = [at.get(one, np.nan) for one in self.rows], [at[one] for one in columns]
        orders["number as place"] = [number(one) - 1 for one in self.rows], count
        return {name: (np.array(at, float), np.array(to, float)) for name, (at, to) in orders.items()}


def _leads(at: Floats, to: Floats, step: int) -> Ints:
    """The columns that stand so far from each row; -1 for none."""
    order = np.argsort(to)  # nan last
    place = np.minimum(np.searchsorted(to[order], at + step), len(to) - 1)
    return np.where(to[order[place]] == at + step, order[place], -1)


def _mirrored(leads: Ints, own: Ints) -> Ints:
    """The columns from which a rule leads to those of rows; -1 for none."""
    origin = dict(zip(leads.tolist(), own.tolist(), strict=True))
    return np.array([origin.get(one, -1) if one >= 0 else -1 for one in own.tolist()], np.int64)


def shifted(crossing: Crossing) -> Shift | None:
    """The rule by which all topics, or most, have moved."""
    own, entries = crossing.own, crossing.values.tocoo()
    here, best, tried = crossing.by(own), None, 0
    for name, (at, to) in crossing.orders().items():
        steps = to[entries.col] - at[entries.row]
        near = np.abs(steps) <= (1 if name == "number as place" else np.inf)
        each, which = np.unique(steps[near], return_inverse=True)
        sums = np.bincount(which, entries.data[near])
        for place in np.argsort(-sums)[:3]:
            leads = _leads(at, to, int(each[place]))
            if sums[place] > 1.01 * (best.gain if best else 0.0) and not (leads == own)[leads >= 0].all():
                best = Shift(name, int(each[place]), leads, np.flatnonzero(leads >= 0), float(sums[place]))
        tried += len(each)
    if best is None:
        return None
    there, back = crossing.by(best.leads), crossing.by(_mirrored(best.leads, own))
    # What topics that nobody asked for have elsewhere says nothing where others are at their place.
    counted = own >= 0 if (own >= 0).sum() >= FEWEST else own < len(crossing.columns)
    more, less = int((there > here)[counted].sum()), int((there < here)[counted].sum())
    p = float(min(1.0, tried * scipy.special.bdtrc(more - 1, more + less, 0.5)))
    alike = _MIRROR * back.sum() > there.sum()
    if p > LEVEL or more < max(FEWEST, np.diff(crossing.values.indptr).astype(bool).sum() / 2) or alike:
        return None
    return best._replace(p=p)


def block(crossing: Crossing) -> Shift | None:
    """The rule by which topics next to each other have moved, if some have."""
    best, chance, n = None, 0.0, len(crossing.columns)
    if n < FEWEST or len(crossing.rows) < FEWEST:
        return None
    orders = crossing.orders()
    for name in ("order of ids", crossing.given):
        if name not in orders:
            continue
        at, to = orders[name]
        rows, order = np.argsort(at), np.argsort(to)
        here = crossing.by(crossing.own)
        rank = np.searchsorted(to[order], at[rows])
        for step in (*_STEPS, *np.unique(np.linspace(3, n - 3, _FAR).astype(int)).tolist()):
            leads = np.full(len(rows), -1)
            place = rank + step if step in _STEPS else (rank + step) % n
            within = (place >= 0) & (place < n) & (rank < n)
            leads[rows[within]] = order[place[within]]
            gains = crossing.by(leads) - here
            gain, start, end = stretch(gains[rows])
            if step not in _STEPS:
                chance = max(chance, gain)
            elif gain > (best.gain if best else 0.0):
                best = Shift(name, step, leads, rows[start:end], gain)
    if best is None or best.gain < max(_GAIN, _TIMES * chance):
        return None
    back = _mirrored(best.leads, crossing.own)
    here, there, mirror = (crossing.by(leads)[best.moved] for leads in (crossing.own, best.leads, back))
    more, less = int((there > here).sum()), int((there < here).sum())
    alike = there.sum() < _MIRROR * max(here.sum(), mirror.sum())
    return None if more < max(_BLOCK, _AGAINST * less) or alike else best


def stretch(values: Floats) -> tuple[float, int, int]:
    """The largest sum of values next to each other, where it starts, and the place after its end."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    gains = sums - np.minimum.accumulate(sums)
    end = int(gains.argmax())
    return float(gains[end]), int(sums[: end + 1].argmin()), end
