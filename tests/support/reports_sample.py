"""Audit results made by hand for the tests of the reports: rows that look real and say nothing about real data."""

from __future__ import annotations

import itertools
import random

import polars as pl

from truerank.audits.leakage.results import CANDIDATE_SCHEMA, NEIGHBOUR_SCHEMA, AuditResult, AuditSummary

THINGS = (
    "heat pump",
    "tidal power",
    "peat bog",
    "coral reef",
    "school lunch",
    "night train",
    "bicycle lane",
    "honey bee",
    "sourdough starter",
    "river otter",
    "rain garden",
    "wool insulation",
    "glacier retreat",
    "noise barrier",
    "seed bank",
    "green roof",
    "cargo bike",
    "mushroom farm",
    "wood stove",
    "lake algae",
    "paper recycling",
    "bird migration",
    "storm surge",
    "solar kiln",
    "ice core",
)
ASPECTS = ("cost", "safety", "history", "maintenance", "health effects", "regulation")
MORE = (
    "in Norway",
    "for beginners",
    "2019",
    "per household",
    "near me",
    "compared to gas",
    "statistics",
    "pros and cons",
)
OTHER = {"cost": "price", "safety": "risks", "history": "origins", "maintenance": "upkeep", "health effects": "illness"}
SOURCES = ("marco-train", "orcas")


def queries(thing: str, aspect: str, rng: random.Random) -> list[tuple[str, str, float]]:
    """Training queries that leak a topic: text, type and similarity."""
    return [
        (f"{thing} {aspect}", "identical", 1.0),
        (f"{aspect} of {thing}s", "identical", 0.95 + rng.random() / 25),
        (f"{thing} {aspect} {rng.choice(MORE)}", "specialization", 0.91 + rng.random() / 12),
        (f"what is the {aspect} of a {thing} {rng.choice(MORE)}", "specialization", 0.91 + rng.random() / 14),
        (thing, "generalization", 0.911 + rng.random() / 15),
        (f"{thing} {OTHER.get(aspect, 'rules')}", "reformulation", 0.911 + rng.random() / 20),
        (f"{rng.choice(THINGS)} {aspect}", "different topic", 0.9101 + rng.random() / 40),
    ]


def texts(thing: str, aspect: str) -> list[tuple[str, int, str]]:
    """Texts of a topic: field, number of the variant, text."""
    return [
        ("title", 0, f"{thing} {aspect}"),
        ("description", 0, f"What is known about the {aspect} of a {thing}, and who has measured it since 1990?"),
        ("variant", 1, f"{aspect} {thing}"),
        ("variant", 2, f"{thing} {aspect} studies"),
    ]


def made_candidates(pairs: int, seed: int = 7) -> pl.DataFrame:
    """That many pairs for the two test sets "lakes04" and "core17"."""
    rng = random.Random(seed)
    topics = list(itertools.product(THINGS, ASPECTS))
    rng.shuffle(topics)
    rows: list[tuple[object, ...]] = []
    for round_ in itertools.count():
        for number, (thing, aspect) in enumerate(topics):
            test = "core17" if number % 5 == 4 else "lakes04"
            for field, variant, text in texts(thing, aspect):
                if rng.random() < 0.35 and round_ == 0:
                    continue
                for query, type_, similarity in rng.sample(
                    queries(thing, aspect, rng), 1 if field == "description" else 3
                ):
                    source, query_id = rng.choice(SOURCES), str(rng.randrange(10_000, 2_000_000))
                    shown = query if round_ == 0 else f"{query} {rng.randrange(9999)}"
                    common = (test, str(301 + number), field, variant, text, source, query_id, shown, similarity, 1)
                    rows.append((*common, type_, type_, "encoder", None, "", "leak"))
                if len(rows) >= pairs:
                    frame = pl.DataFrame(rows[:pairs], schema=CANDIDATE_SCHEMA, orient="row")
                    return frame.sort("test", "topic_id", "field", "variant_no", "source", maintain_order=True)
    raise AssertionError("unreachable")


def made_neighbours(candidates: pl.DataFrame, seed: int = 7) -> pl.DataFrame:
    """The candidates with less similar neighbours around them."""
    rng = random.Random(seed)
    rows = [
        (
            "core17" if number % 5 == 4 else "lakes04",
            str(301 + number),
            "title",
            0,
            "a topic",
            SOURCES[rank % 2],
            str(rank),
            "a query",
            min(0.9099, rng.betavariate(9, 6)),
            rank,
            True,
        )
        for number in range(250)
        for rank in range(1, 41)
    ]
    far = pl.DataFrame(rows, schema=NEIGHBOUR_SCHEMA, orient="row")
    return pl.concat([candidates.with_columns(exact=pl.lit(True)).select(list(NEIGHBOUR_SCHEMA)), far])


_UNSETTLED = {
    "notes": [],
    "settle": [],
    "doubts": {"topics": 0, "queries": 0, "pairs": 0, "fields": {}},
    "sensitivity": [],
    "other_topics": {},
}
_SENSITIVITY = [
    {
        "field": "title", "kind": kind, "planted": 100, "found": found, "share": found / 100, "low": low, "high": high,
        "by": {"encoder": encoder, "words": words, "letters": 0, "inside": 0},
    }
    for kind, found, low, high, encoder, words in (("order", 99, 0.95, 1.0, 90, 99), ("synonym", 31, 0.22, 0.41, 31, 0))
]  # fmt: skip


def made_summary(candidates: pl.DataFrame) -> AuditSummary:
    """A summary of three test sets that fits the candidates; "web09" was not read to its end."""
    tests: dict[str, object] = {}
    for name, size in (("lakes04", 200), ("core17", 50)):
        pairs = candidates.filter(test=name)
        leaked = pairs["topic_id"].unique(maintain_order=True).to_list()
        fields = {}
        for field in ("title", "description", "variant", "union"):
            part = pairs if field == "union" else pairs.filter(field=field)
            first = part.filter(source=SOURCES[0])
            fields[field] = {
                label: {"topics": some["topic_id"].n_unique(), "queries": some["query_text"].n_unique()}
                for label, some in ((SOURCES[0], first), (f"+{SOURCES[1]}", part))
            }
        tests[name] = {
            "topics": size,
            "verdict": "CONTAMINATED",
            "sentence": f"{len(leaked)} of {size} topics have a training query above the threshold.",
            "leaked_topics": leaked,
            **_UNSETTLED,
            "fields": fields,
        }
    nothing = {"topics": 0, "queries": 0}
    tests["beir-kelp"] = {
        "topics": 300,
        "verdict": "CLEAN",
        "sentence": "Every training query was read, and no evidence found a pair.",
        "leaked_topics": [],
        **_UNSETTLED,
        "sensitivity": _SENSITIVITY,
        "other_topics": {
            "title": {
                "texts": 300,
                "proposed": 2,
                "share": 0.006667,
                "by": {"encoder": 2, "words": 0, "letters": 0, "inside": 0},
            }
        },
        "fields": {field: {SOURCES[0]: nothing, f"+{SOURCES[1]}": nothing} for field in ("title", "union")},
    }
    tests["web09"] = {
        "topics": 50,
        "verdict": "UNKNOWN",
        "sentence": "Nothing above the threshold, but 3 topics have no text in the fields compared.",
        "leaked_topics": [],
        **_UNSETTLED,
        "fields": {},
    }
    read = {"distinct_estimated": False, "empty": 2, "repaired": 14, "skipped": 0}
    return {
        "threshold": 0.91,
        "floor": 0.91,
        "calibrated_for": "sentence-transformers/paraphrase-MiniLM-L6-v2",
        "calibrated": False,
        "encoder": "packaged:all-MiniLM-L6-v2",
        "mode": "exhaustive",
        "top_k": 100,
        "sources": {
            "marco-train": {"read": 367_013, "distinct": 366_640, **read},
            "orcas": {"read": 10_405_342, "distinct": 10_390_000, **read, "distinct_estimated": True},
        },
        "tests": tests,
        "prefilter": None,
    }  # type: ignore[return-value]


def made_result(pairs: int = 300) -> AuditResult:
    """An audit result with that many pairs."""
    candidates = made_candidates(pairs)
    return AuditResult(made_summary(candidates), candidates, made_neighbours(candidates))
