"""Every command that is built from its function: what it declares, and the vocabulary it keeps to."""

from __future__ import annotations

import importlib
import inspect
import typing
from pathlib import Path

import pytest

import truerank
from truerank.cli import main
from truerank.cli.app import NOT_CARRIED
from truerank.cli.commands import COMMANDS, first_sentence
from truerank.cli.declarations import Command, command_at, flag_of
from truerank.errors import InputError, OptionError
from truerank.options import Scoring
from truerank.reports.results import Result

#: The vocabulary: what a name means, in every command that has it. A name that is missing here, or that a command
#: needs for something else, is a reason to talk about the command, not about this list.
VOCABULARY = {
    "all_columns": "every text column of a source is compared",
    "also": "further evaluations that take part",
    "also_qrels": "further judgments to count",
    "annotators": "who gave the labels that count",
    "any_analyser": "an index of another analyser is searched all the same",
    "audit": "what `leakage audit` wrote",
    "backend": "the library that runs a model",
    "baseline": "what others are compared with: a run, an evaluation or an earlier audit",
    "baseline_category": "the category of runs that others are compared with",
    "basis": "whether labels or the threshold say what is a leak",
    "block_size": "texts that are worked on, and saved, at a time",
    "by_score": "results are ordered by score, not by the rank column",
    "cache": "a file or folder that keeps scores or vectors between runs of a command",
    "calibrated_for": "the encoder that a threshold was calibrated for",
    "candidates": "what a rerank run may hold",
    "cap": "faults shown of each kind",
    "collection": "documents to count",
    "confidence": "of intervals; 1 minus it is the level of a test",
    "correction": "for the number of comparisons",
    "cut": "what was not reranked is left out",
    "cutoff": "results that one measure looks at",
    "date": "a date to state",
    "depth": "ranks of a run that count",
    "device": "where a model runs",
    "docs": "a collection whose texts are read",
    "docs_ids": "the ids of a collection",
    "effect_size": "how a difference is standardised",
    "encoder": "what turns texts into vectors",
    "engine": "what runs the work",
    "evaluation": "what `evaluate` wrote",
    "family": "what a correction is over",
    "field": "the field of topics that is read",
    "fields": "the fields of an index or of topics that are read",
    "file_format": "of a file that is written",
    "floor": "the lowest similarity of pairs that are written",
    "folds": "of cross-validation",
    "grid": "values to try",
    "high": "upper bound of a median",
    "include_models": "labels of models count like those of people",
    "index": "a lexical index",
    "instances": "a training set",
    "interval": "the method of intervals",
    "k": "results that a search returns",
    "labels": "judgments by people or models",
    "level": "how severe a kind of fault is",
    "low": "lower bound of a median",
    "match": "what two sets of queries are compared by",
    "max_results": "results allowed for each topic",
    "max_tag": "characters allowed in a tag",
    "means": "tables of mean scores",
    "measure": "the one measure that decides",
    "measures": "what is computed",
    "metadata": "tables about runs",
    "min_precision": "the precision that a threshold must reach",
    "missing": "what a topic scores that a run lacks",
    "mode": "which texts are encoded",
    "model": "a ranker or a retrieval model",
    "n": "topics to draw",
    "out": "where artifacts go",
    "pairs": "every pair is stated",
    "passages": "which passages of a document count",
    "per_topic": "scores of every topic are shown",
    "perplexity": "of a map of runs",
    "precision": "of the numbers of a model",
    "prefilter_cut": "the score below which a text is not encoded, by field",
    "preset": "whose analyser and parameters are used",
    "probabilities": "probabilities are written, not logarithms",
    "qrels": "relevance judgments",
    "queries": "queries to count",
    "recipe": "of a training",
    "redact": "keyed hashes stand in place of texts",
    "redact_key": "the file with the key of such hashes",
    "rel": "lowest grade that counts as relevant",
    "remove": "whether training queries or topics go",
    "resample": "what is drawn again for an interval",
    "resamples": "repetitions of a resampling",
    "run": "a TREC run",
    "scoring": "how runs are scored",
    "seed": "of whatever is drawn",
    "set_": "a parameter by name",
    "significance": "the significance test",
    "sort": "the measure that runs are ordered by",
    "source": "documents to index",
    "sparse_qrels": "judgments of one or few documents a topic",
    "split": "how documents are cut into passages",
    "stated": "figures that a text states",
    "stemmer": "of an analyser",
    "stopwords": "of an analyser",
    "strict": "bytes that are not UTF-8 are an error",
    "tag": "the last column of a run",
    "tag_pattern": "what a tag has to match",
    "tau": "variant of Kendall's tau",
    "test": "a source of test topics",
    "test_set": "a test set inside an audit, by name",
    "threads": "processors of one process",
    "threshold": "a pair with a higher similarity is a candidate",
    "threshold_rule": "how a threshold is chosen from the precision above it",
    "tie": "differences that count as none",
    "ties": "order of documents with equal scores",
    "title": "what a report is called",
    "tokeniser": "of an analyser",
    "topic": "topics by id",
    "topics": "a source of topics",
    "topics_of": "the run that is compared topic by topic",
    "train": "training data",
    "variants": "query variants of a test set",
    "vectors": "word vectors",
    "votes": "the rule for several voices",
    "weights": "of the fields of an index",
    "where": "which rows of tables count",
    "workers": "processes",
    "zeros": "what a test does with equal scores",
}
#: Names that the vocabulary replaces.
NOT_ALLOWED = {
    "alpha", "annotator", "bootstrap", "by", "draws", "form", "name", "permutations", "policy", "relevance",
    "relevant", "relevant_from", "rule", "top_k", "topic_field", "version",
}  # fmt: skip
#: Groups whose options are still declared by hand. The list only gets shorter.
LEFT = {"transfer", "survivorship", "judge", "pool", "instances", "experiment"}


@pytest.fixture(scope="module")
def commands() -> list[Command]:
    return [command_at(name, path) for name, path in COMMANDS.items()]


def test_the_commands_not_carried_become_fewer() -> None:
    assert {entry.name for entry in NOT_CARRIED} <= LEFT
    assert not {name.split()[0] for name in COMMANDS} & {entry.name for entry in NOT_CARRIED}


def test_every_option_is_in_the_vocabulary(commands: list[Command]) -> None:
    used = {option.name for command in commands for option in command.options}
    assert sorted(used - VOCABULARY.keys()) == []
    assert not used & NOT_ALLOWED
    assert not NOT_ALLOWED & VOCABULARY.keys()


def test_a_name_has_one_type_of_value_and_one_default(commands: list[Command]) -> None:
    """An option that several commands have reads the same, and ties, missing topics and the like have one default."""
    defaults: dict[str, set[object]] = {}
    for command in commands:
        for option in command.options:
            if not option.required and option.name != "depth":
                defaults.setdefault(option.name, set()).add(str(option.default))
    for name in ("ties", "missing", "rel", "seed", "confidence", "correction", "field", "k", "preset", "workers"):
        if name != "k":
            assert len(defaults.get(name, {0})) == 1, name


def test_every_command_is_described_and_returns_a_result(commands: list[Command]) -> None:
    for command in commands:
        assert command.summary and command.examples, command.name
        assert isinstance(command.result, type) and issubclass(command.result, Result), command.name
        assert first_sentence(COMMANDS[command.name]) == command.summary
        for option in command.options:
            assert option.help.endswith((".", "]")), (command.name, option.name)


def test_examples_have_options_that_exist(commands: list[Command]) -> None:
    for command in commands:
        flags = {flag for option in command.options for flag in option.flags} | {"--json", "--format", "--fail-on"}
        for example in command.examples:
            assert example.startswith(f"truerank {command.name} ")
            used = {word for word in example.split() if word.startswith("-")}
            assert used <= flags, (command.name, used - flags)


def test_results_have_a_module_that_shows_them(commands: list[Command]) -> None:
    for command in commands:
        shown = importlib.import_module(command.result._shown_in)
        assert shown.__doc__
        assert not {"save", "html", "text"} & {
            name for name, _ in inspect.getmembers(command.result, inspect.isfunction)
        }, command.name


def test_flags() -> None:
    assert [flag_of(name) for name in ("block_size", "k", "set_")] == ["--block-size", "-k", "--set"]


def test_python_and_the_command_line_refuse_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OptionError) as raised:
        Scoring(depth=0)
    assert str(raised.value) == "depth: must be at least 1, got 0. correct the value."
    with pytest.raises(OptionError, match="ties: 'random' is not one of the choices"):
        truerank.evaluate({"1": {"a": 1}}, {"1": {"a": 0.5}}, ties="random")
    with pytest.raises(OptionError, match="dept: evaluate has no such option"):
        truerank.evaluate({"1": {"a": 1}}, {"1": {"a": 0.5}}, dept=3)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", "x", "--run", "y", "--depth", "0"])
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", "--depth: must be at least 1, got 0. correct the value.\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["evaluate", "--qrels", "x"], "truerank evaluate: "),
        (["evaluate", "--qrels", "x", "--run", "y", "--rn", "z"], "Unknown option: --rn"),
        (["evaluate", "--qrels", "x", "--run", "y", "z"], "truerank evaluate: "),
        (["evalute"], "truerank: "),
        (["track", "repot"], "truerank: "),
        (["search", "--index", "x", "--topics", "y", "-k", "many"], "-k"),
    ],
)
def test_faults_of_words_are_one_line(words: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert fault in err
    assert err.rstrip().endswith("--help'.")


def test_the_help_has_panels_ranges_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["track", "report", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert ended.value.code == 0
    for part in ("How runs are scored", "[at least 1]", "[default: trec_eval]", "Examples", "--baseline-category"):
        assert part in text


def test_notebook_forms_give_the_same_scores() -> None:
    import polars as pl

    qrels, run = {"1": {"a": 1, "b": 0}, "2": {"c": 2}}, {"1": {"a": 0.5, "b": 0.7}, "2": {"c": 1.0}}
    expected = truerank.evaluate(qrels, run, "nDCG@10")
    rows = [(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items()]
    scores = [(topic, doc, score) for topic, docs in run.items() for doc, score in docs.items()]
    frames = (
        pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row"),
        pl.DataFrame(scores, schema=["qid", "docno", "score"], orient="row"),
    )
    assert truerank.evaluate(*frames, "nDCG@10").mean.tolist() == expected.mean.tolist()
    assert truerank.evaluate(qrels, {"mine": run}, "nDCG@10").runs == ("mine",)
    assert expected.runs == ("run",)
    assert "nDCG@10" in repr(expected) and "<table>" in expected._repr_html_()
    with pytest.raises(InputError, match="cannot read"):
        truerank.evaluate(3, run)


def test_the_front_door_shows_the_commands() -> None:
    for name in ("evaluate", "compare", "index", "search", "tune", "rerank", "train", "track", "leakage", "demo"):
        assert name in dir(truerank)
    assert typing.get_type_hints(inspect.unwrap(truerank.evaluate))["scoring"] is Scoring
