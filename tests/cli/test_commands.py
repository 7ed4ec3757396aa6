"""Every command that is built from its function: what it declares, and the vocabulary it keeps to."""

from __future__ import annotations

import importlib
import inspect
import typing
from pathlib import Path

import pytest

import truerank
from truerank.cli import main
from truerank.cli.commands import COMMANDS, first_sentence
from truerank.cli.declarations import Command, command_at, flag_of
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.options import Scoring

#: The vocabulary: what a name means, in every command that has it. A name that is missing here, or that a command
#: needs for something else, is a reason to talk about the command, not about this list.
VOCABULARY = {
    "adjudicators": "who settles disagreements",
    "again": "items that a model skipped are asked about again",
    "all_columns": "every text column of a source is compared",
    "all_text": "of pages, not the main content only",
    "allow_fewer": "fewer rows than asked for are enough",
    "allow_hosts": "host names of a server",
    "also": "further evaluations that take part",
    "also_qrels": "further judgments to count",
    "alt_texts": "of images",
    "anew": "measured again although it is known",
    "annotation_depth": "documents that an annotator saw, at most",
    "annotators": "who judges, or whose labels count",
    "any_analyser": "an index of another analyser is searched all the same",
    "as_": "the name under which a model's labels are kept",
    "audit": "a folder that an audit wrote",
    "backend": "the library that runs a model",
    "base_url": "of a web archive",
    "baseline": "what others are compared with: a run or an evaluation",
    "baseline_category": "the category of runs that others are compared with",
    "basis": "whether labels or the threshold say what is a leak",
    "batch": "documents between two trainings",
    "best": "several versions of which the best counts",
    "block_size": "of what is worked on, and saved, at a time",
    "boilerplate": "share of documents that hold a passage, from which on it is boilerplate",
    "budget": "judgments in all",
    "by_score": "results are ordered by score, not by the rank column",
    "cache": "a file that keeps scores between runs of a command",
    "calibrated_for": "the encoder that a threshold was calibrated for",
    "candidates": "documents that a rerank run may hold",
    "called": "what a data set is called in another place",
    "cap": "faults shown of each kind",
    "certificate": "of a server",
    "checkers": "who looks at a spot check",
    "choose": "which non-relevant passages are taken",
    "collection": "documents to count",
    "combine": "what several judgments become that go to one document",
    "comparisons": "how many comparisons a claim was chosen from",
    "concurrency": "requests at the same time",
    "confidence": "of intervals; 1 minus it is the level of a test",
    "contained_words": "words of the shortest document that is looked for in others",
    "containment": "share of a document that stands in another one",
    "copy": "a design that is written to a file",
    "correction": "for the number of comparisons",
    "counts": "labels that were counted already",
    "cut": "what was not reranked is left out",
    "cut_off": "above it a difference is a candidate",
    "cutoff": "results that one measure looks at",
    "cutoffs": "an answer among so many results counts",
    "data_set": "of a scan",
    "date": "that a card states",
    "day": "of a year, MM-DD",
    "definition": "of an answer that is compared",
    "depth": "ranks of a run that count",
    "depths": "the folder of judgments by annotation depth",
    "design": "of an experiment",
    "device": "where a model runs",
    "discarded": "ids of discarded queries",
    "docs": "documents whose texts are read",
    "docs_ids": "the ids of a collection",
    "drawing": "what is drawn again for an interval: pairs, items, whole topics or strata",
    "drop_tracking": "parameters of URLs",
    "drop_www": "of URLs",
    "dry_run": "the cost is estimated and nothing is run",
    "duplicates": "what happens to documents with the same text",
    "effect_size": "how a difference is standardised",
    "encoder": "a sentence encoder",
    "endpoint": "the address of a chat model",
    "ends": "where the text of a record ends",
    "effect": "what leakage effect printed",
    "engine": "what runs long work",
    "equivalent": "a map of documents that count as one",
    "escape_formulas": "cells of CSV that a spreadsheet would run are made texts",
    "recover": "what can still be read of a damaged store is taken",
    "estimate_for": "workers that a cost is estimated for",
    "evaluation": "what `evaluate` wrote",
    "evidence": "what names candidates",
    "exclude_qrels": "judgments whose relevant documents get into no row without a leak",
    "expert_qrels": "judgments of experts",
    "expert_rel": "lowest grade of an expert that counts as relevant",
    "extrapolate_to": "the last depth of an extrapolation",
    "fading": "what earlier documents of a run weigh",
    "families": "a table of the family of each run",
    "family": "what a correction is over",
    "field": "the field of topics that is read",
    "fields": "the fields of an index",
    "file_format": "of a file that is read or written",
    "files": "files that are imported",
    "fill": "the set that gives the rows without a leak",
    "first_stage": "a run whose documents calibrate",
    "firsts": "a table of first answers",
    "floor": "the least probability of a candidate",
    "folder": "what a command wrote",
    "folders": "what a command wrote, several times",
    "folds": "of cross-validation",
    "for_": "the place for which something is stated",
    "given": "what differences take as given",
    "grade": "of a document that was selected",
    "grades": "of the scale of relevance",
    "grid": "values to try",
    "group_by": "what forms the rows of a table",
    "high": "upper bound of a median",
    "host": "the address of a server",
    "ids": "whose ids judgments have",
    "ignore_robots": "ask although robots.txt forbids it",
    "include_models": "labels of models count like those of people",
    "index": "a lexical index",
    "instances": "a training set",
    "interval": "the method of intervals",
    "into": "a file that a statement goes into",
    "items": "what is judged",
    "judged_by": "who gave the judgments",
    "k": "results that a search returns",
    "keep_models": "trained rankers are saved",
    "keep_scheme": "of URLs",
    "keep_slash": "of URLs",
    "key": "of a certificate",
    "key_env": "the environment variable with a key",
    "kind": "which of the command's kinds is made",
    "kinds": "kinds of what is looked for: queries, leaks",
    "labels": "judgments by people or models",
    "lacking": "what is done where a version lacks a document",
    "later": "a later corpus",
    "leaks": "rows that leak",
    "length": "judgments of a simulated topic at most",
    "level": "how severe a kind of fault is",
    "limit": "reading stops after so many rows",
    "log": "an annotation log",
    "lookup": "how captures are found",
    "low": "lower bound of a median",
    "mapping": "a table of ids",
    "margin": "a difference of scores that is acceptable",
    "match": "what two sets of queries are compared by",
    "match_by": "how a document is found again in another version",
    "matched": "what `transfer match` wrote",
    "matched_by": "what random topics share with the removed ones",
    "max_hours": "the cost allowed",
    "max_items": "items judged now",
    "max_ratio": "largest share of relevant documents among the judged",
    "max_results": "results allowed for each topic",
    "max_tag": "characters allowed in a tag",
    "means": "tables of mean scores",
    "measure": "the one measure that decides",
    "measures": "what is computed",
    "memorisation_size": "training size of the tables on memorisation",
    "metadata": "tables about runs",
    "method": "how documents are chosen for a pool",
    "min_precision": "the precision that a threshold must reach",
    "min_relevant": "relevant documents that a topic needs",
    "missing": "what a topic scores that a run lacks",
    "mode": "which texts are encoded",
    "model": "a ranker, a retrieval model or a chat model",
    "model_judgments": "judgments of a model in place of people's",
    "n": "topics to draw",
    "named_by": "what must have named a candidate",
    "negatives": "the version that non-relevant documents come from",
    "new_tokens": "who gets an access token",
    "ngram": "words in an n-gram",
    "ngram_share": "share of the n-grams of a text that another text has",
    "no_repair": "wrongly decoded characters stay",
    "no_tokens": "a name is enough to judge",
    "official": "the qrels of a track",
    "official_rule": "the stopping rule that makes the qrels of a track",
    "only": "which items a model judges",
    "order": "of work",
    "out": "where artifacts go",
    "outside": "what happens to grades outside the scale",
    "overlap": "items that all judge",
    "page_rate": "pages a second",
    "pair": "two versions to compare",
    "pairs": "every pair is stated",
    "pairs_by": "how pairs of query and document are looked up",
    "part": "what is learnt from of a document",
    "passages": "which passages of a document count",
    "pattern": "how the id of a passage holds that of its document",
    "people": "grades of people",
    "people_only": "labels of models are left out",
    "people_sample": "how the pairs were drawn that people graded",
    "per_minute": "most requests a minute",
    "per_probe": "documents of each kind that are changed",
    "per_topic": "scores of every topic are shown",
    "percentile": "of differences of scores",
    "perplexity": "of a map of runs",
    "pilot_size": "training size of the pilot",
    "plot": "figures are drawn with the tables",
    "pool": "a store whose items are a pool of documents",
    "port": "of a server",
    "precision": "of the numbers of a model",
    "prefilter_cut": "the score below which a text is not encoded, by field",
    "preset": "whose analyser and parameters are used",
    "previous": "an earlier version of the documents, as they were judged",
    "previous_qrels": "an earlier version of the judgments",
    "probabilities": "probabilities are written, not logarithms",
    "probability": "how a score becomes a probability",
    "probe": "changes of texts that test a judge",
    "probe_store": "the store of changed texts",
    "prompt": "own instructions for a model",
    "qrels": "relevance judgments",
    "queries": "queries to count",
    "queries_from_documents": "documents that make queries",
    "reason": "a class of what became of a document",
    "reasons": "labels that say why a query has no answer",
    "recipe": "of a training",
    "record": "where runs are recorded besides the folder",
    "redact": "keyed hashes stand in place of texts",
    "redact_key": "the file with the key of such hashes",
    "reference": "a link to a report",
    "regularisation": "of a learner",
    "rel": "lowest grade that counts as relevant",
    "remove": "whether training queries or topics go",
    "repeats": "what further documents of a group of equivalent ones are",
    "resamples": "repetitions of a resampling",
    "rest": "words that must be left of a document",
    "results": "what an experiment wrote",
    "retries": "further attempts",
    "retry_failed": "what failed before is run again",
    "role": "what an annotator is",
    "roles": "what the columns of training examples are",
    "rows": "a table of rows",
    "rows_per_topic": "rows of each topic",
    "run": "a TREC run",
    "same_rel": "one lowest grade for all collections",
    "sample": "which items are drawn",
    "sampled": "documents that calibrate",
    "scale": "the grades",
    "scan": "what `transfer scan` wrote",
    "scheme": "what is asked of people",
    "scoring": "how runs are scored",
    "search_rate": "look-ups a second",
    "seed": "of whatever is drawn",
    "seeds": "draws, with as many seeds",
    "select": "which relevant documents are selected",
    "semantic": "which texts an encoder compares",
    "set_": "a parameter by name",
    "settings": "rare settings in a file",
    "shards": "folders of the jobs of an array",
    "share": "of a collection",
    "shingle_size": "words or letters in a shingle",
    "shingle_unit": "what a shingle is made of",
    "shown": "documents that an annotator is shown",
    "significance": "the significance test",
    "similarity": "of two documents that are near-duplicates",
    "size": "training instances",
    "sort": "the measure that runs are ordered by",
    "sort_parameters": "of URLs",
    "source": "documents to index",
    "sparse_qrels": "judgments of one or few documents a topic",
    "split": "how documents are cut into passages",
    "spot_check": "items that a second person looks at",
    "stated": "figures that a text states",
    "stemmer": "of an analyser",
    "stopping": "when a topic has enough judgments",
    "stopwords": "of an analyser",
    "store": "a judging store",
    "strategy": "which version of a document is taken",
    "strict": "bytes that are not UTF-8 are an error",
    "subset": "topics that are not pooled are passed over",
    "survival": "what makes a query survive annotation",
    "survived": "ids of queries that survived",
    "suite": "training sets and test sets to compare",
    "system": "the run that a claim calls better",
    "tag": "the last column of a run",
    "tag_pattern": "what a tag has to match",
    "tau": "variant of Kendall's tau",
    "team_prefix": "the sign up to which the name of a run is its team's",
    "temperature": "of a chat model",
    "test": "a source of test topics",
    "test_docs": "documents of the test set",
    "test_index": "an index of the test documents",
    "test_rel": "lowest grade that counts as relevant, test judgments",
    "test_run": "a first stage of the test topics",
    "test_set": "one of several test sets",
    "threads": "processors of one process",
    "threshold": "the similarity above which a pair counts",
    "threshold_rule": "how a threshold is chosen from the precision above it",
    "tie": "differences that count as none",
    "ties": "order of documents with equal scores",
    "timeout": "seconds for one attempt",
    "title": "what a report is called",
    "to": "the version to carry to",
    "tokeniser": "of an analyser",
    "tolerance": "how far a score in less than full precision may differ",
    "topic": "topics by id",
    "topic_similarity": "of two topics that are near-duplicates",
    "topics": "a source of topics",
    "topics_of": "the run that is compared topic by topic",
    "train": "training data",
    "train_docs": "the documents whose ids training data holds",
    "train_qrels": "relevance judgments of training queries",
    "train_queries": "the queries whose ids training data holds",
    "trials": "simulated judgings",
    "tries": "captures that are tried",
    "trust": "how labels and scan are combined",
    "tsv": "lines are written, too",
    "unlike": "systems unlike the runs",
    "unmapped": "what happens to documents without an id",
    "urls": "a table of document id and URL",
    "user_agent": "who asks a web archive",
    "variants": "query variants of a test set",
    "vectors": "word vectors",
    "version": "a version of a collection, NAME=SRC; the judged one first",
    "version_name": "the name of a version",
    "votes": "the rule for several voices",
    "weights": "of the fields of an index",
    "where": "which rows of tables count",
    "which": "which labels are exported",
    "with_": "a further ranker",
    "words": "length of a sequence of words",
    "work": "a folder that keeps work between runs of a command",
    "workers": "processes",
    "write": "further formats that are written",
    "years": "of which snapshots are wanted",
    "zeros": "what a test does with equal scores",
}
#: Names that the vocabulary replaces.
NOT_ALLOWED = {
    "alpha", "annotator", "bootstrap", "by", "draws", "form", "name", "permutations", "policy", "relevance",
    "relevant", "relevant_from", "rule", "top_k", "topic_field",
}  # fmt: skip


@pytest.fixture(scope="module")
def commands() -> list[Command]:
    return [command_at(name, path) for name, path in COMMANDS.items()]


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
    for name in ("ties", "missing", "rel", "seed", "confidence", "correction", "field", "k", "preset"):
        if name != "k":
            assert len(defaults.get(name, {0})) == 1, name
    # One process, or what the engine takes where `--engine` is an option too.
    assert defaults["workers"] <= {"1", "None"}


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
        (["evaluate", "--qrels", "x"], "truerank evaluate: --run is missing, or has no value. see "),
        (["evaluate", "--qrels", "x", "--run", "y", "--rn", "z"], "Unknown option: --rn"),
        (["evaluate", "--qrels", "x", "--run", "y", "z"], "truerank evaluate: no option takes 'z'. see "),
        (["evalute"], 'truerank: Unknown command "evalute". Did you mean "evaluate"? see '),
        (["track", "repot"], "truerank: "),
        (["search", "--index", "x", "--topics", "y", "--format", "many"], "--format"),
    ],
)
def test_faults_of_words_are_one_line(words: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert fault in err
    assert err.rstrip().endswith("--help'.")


def test_a_shard_that_has_done_its_part_ends_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job array takes any other code for a failure."""
    (tmp_path / "docs.tsv").write_text("".join(f"d{number}\tword{number} and more words\n" for number in range(9)))
    words = ["collection", "audit", "--docs", str(tmp_path / "docs.tsv"), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--engine", "shard:2/2"])
    assert ended.value.code == 0
    assert "shard:2/2: worked on 0 blocks, 1 are of other shards" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--engine", "shard:1/8"], ["--engine=ray"]])
def test_commands_of_one_machine_say_that_they_take_no_shards(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["index", "docs.tsv", "--out", "index", *words])
    assert ended.value.code == 2
    assert "truerank index: works on one machine and has no --engine" in capsys.readouterr().err


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
    for name in {words.split()[0] for words in COMMANDS}:
        assert name in dir(truerank)
    assert typing.get_type_hints(inspect.unwrap(truerank.evaluate))["scoring"] is Scoring


def test_completion_knows_the_commands_and_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", "fish"])
    assert not ended.value.code
    (script,) = tmp_path.rglob("truerank.fish")
    text = script.read_text()
    assert all(word in text for word in ("evaluate", "select-topics", "judge", "baseline-category"))
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion", "tcsh"])
    assert ended.value.code == 2


def test_modules_do_not_import_each_other_in_circles() -> None:
    """No module takes part in a circle, imports inside functions and those for types included."""
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed: circles are not looked for")
    graph = grimp.build_graph("truerank")
    imports = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules - {"truerank"}}
    while True:
        imported = set().union(*imports.values())
        ends = {name for name, found in imports.items() if not found & imports.keys() or name not in imported}
        if not ends:
            break
        imports = {name: found for name, found in imports.items() if name not in ends}
    assert sorted(imports) == []
