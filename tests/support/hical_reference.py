"""HiCAL written a second time, plainly: features by dictionaries, the loss given to SciPy's optimiser."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from truerank.audits.pool import ActiveLearner
from truerank.lexical import Analyser
from truerank.records import Document

Floats = NDArray[np.float64]


#: Porter's own program, which `test_lexical_index` holds to the words of his list.
STEM = Analyser("whitespace", "none", "porter").term


def words_of(text: str) -> list[str]:
    """Stems of the text's words."""
    return [STEM(word) for word in re.findall(r"[a-z]{2,}", text.lower())]


def tf_idf(documents: Sequence[Document]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """A dictionary of weights for each document, of length 1, and ln(N/df) by term."""
    counts = [Counter(words_of(document.text)) for document in documents]
    frequency = Counter(term for count in counts for term in count)
    idf = {term: math.log(len(documents) / df) for term, df in frequency.items() if df >= 2}
    return [weighted(count, idf) for count in counts], idf


def weighted(count: Mapping[str, int], idf: Mapping[str, float]) -> dict[str, float]:
    raw = {term: (1 + math.log(tf)) * idf[term] for term, tf in count.items() if term in idf}
    norm = math.sqrt(sum(value * value for value in raw.values()))
    return {term: value / norm for term, value in raw.items()} if norm else raw


def dense(documents: Sequence[Document]) -> tuple[Floats, dict[str, int], dict[str, float]]:
    """The features as a dense matrix, shape (documents, terms), the terms' columns and ln(N/df)."""
    rows, idf = tf_idf(documents)
    columns = {term: place for place, term in enumerate(sorted(idf))}
    matrix = np.zeros((len(documents), len(columns)))
    for number, row in enumerate(rows):
        for term, value in row.items():
            matrix[number, columns[term]] = value
    return matrix, columns, idf


def optimum(rows: Floats, relevant: NDArray[np.bool_], regularisation: float) -> Floats:
    """The weights that minimise the class-weighted logistic loss, found by L-BFGS.

    The rows are turned into as many dimensions as there are rows; the optimum lies in their span.
    """
    values, vectors = np.linalg.eigh(rows @ rows.T)
    used = values > 1e-10
    turned = vectors[:, used] * np.sqrt(values[used])
    signs = np.where(relevant, 1.0, -1.0)
    shares = np.where(relevant, 0.5 / relevant.sum(), 0.5 / (~relevant).sum())

    def loss(point: Floats) -> tuple[float, Floats]:
        margins = signs * (turned @ point[:-1] + point[-1])
        pulls = -shares * signs / (1 + np.exp(margins))
        value = shares @ np.logaddexp(0, -margins) + regularisation / 2 * point[:-1] @ point[:-1]
        return value, np.append(turned.T @ pulls + regularisation * point[:-1], pulls.sum())

    found = scipy.optimize.minimize(
        loss, np.zeros(turned.shape[1] + 1), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    return rows.T @ (vectors[:, used] @ (found.x[:-1] / np.sqrt(values[used])))


class Reference:
    """The next document by the reference; random documents are those that the learner draws."""

    def __init__(self, documents: Sequence[Document], query: str) -> None:
        self.ids = [document.doc_id for document in documents]
        self.matrix, columns, idf = dense(documents)
        self.query = np.zeros(self.matrix.shape[1])
        for term, value in weighted(Counter(words_of(query)), idf).items():
            self.query[columns[term]] = value

    def next(self, learner: ActiveLearner, judged: Mapping[str, int]) -> str:
        places = [self.ids.index(doc_id) for doc_id in judged]
        taken = np.zeros(len(self.ids), np.bool_)
        taken[places] = True
        presumed = learner._drawn(np.flatnonzero(taken), len(judged))
        assert not taken[presumed].any() and len(set(presumed.tolist())) == min(100, int((~taken).sum()))
        rows = np.vstack([self.query, self.matrix[places], self.matrix[presumed]])
        labels = np.array([True, *(grade >= 1 for grade in judged.values()), *(False for _ in presumed)])
        scores = self.matrix @ optimum(rows, labels, learner.options.regularisation)
        scores[taken] = -np.inf
        return self.ids[int(np.argmax(scores))]


def generated(count: int = 400, topics: int = 4, seed: int = 5) -> tuple[list[Document], dict[str, str], dict]:
    """A small collection: documents of a few subjects, one query for each, and which documents answer it."""
    draw = random.Random(seed)
    common = [f"{a}{b}" for a in ("ban", "mor", "tel", "gri", "sol", "ver") for b in "abcdefghijklmnopqrst"]
    subjects = [[f"{name}{sign}" for sign in "abcdefgh"] for name in ("quark", "tulip", "sonata", "harbour")][:topics]
    documents, grades = [], {f"t{number}": {} for number in range(topics)}
    for number in range(count):
        words = draw.choices(common, k=draw.randint(15, 60))
        about = draw.randrange(3 * topics)
        if about < topics:
            words += draw.choices(subjects[about], k=draw.randint(2, 8))
            if draw.random() < 0.8:
                grades[f"t{about}"][f"d{number:04d}"] = draw.randint(1, 2)
        draw.shuffle(words)
        documents.append(Document(f"d{number:04d}", "", "", " ".join(words)))
    return documents, {f"t{number}": " ".join(subjects[number][:2]) for number in range(topics)}, grades
