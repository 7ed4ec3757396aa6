"""CEDR and PARADE against computations written out token by token, on a small BERT with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tiny_models import save_bert
from truerank.audits.survivorship.instances import Instance
from truerank.errors import InputError
from truerank.rankers.base import Pair, open_ranker
from truerank_lab.rankers.fitting import fit
from truerank_lab.rankers.passage_ranker import PassageRanker, PassageSettings, chosen_passages
from truerank_lab.rankers.recipes import RECIPES

SMALL = {"passage": 6, "stride": 4, "passages": 3, "sequence": 16}
KINDS = ("cedr", "parade")
PAIRS = [
    Pair("speed of sound", "the speed of sound in water is the speed of light"),
    Pair("speed of sound", "air"),
    Pair("what is light", ""),
    Pair("", "the sound of water"),
    Pair("the speed of light in water measure", "sound light water air " * 12),
]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "bert", labels=None)


def opened(kind: str, bert: Path, **settings: int) -> PassageRanker:
    ranker = open_ranker(f"{kind}:{bert}", device="cpu", **{**SMALL, **settings})
    assert isinstance(ranker, PassageRanker)
    return ranker


def test_passages_overlap_and_keep_the_end() -> None:
    settings = PassageSettings(passage=6, stride=4, passages=3, sequence=16)
    assert chosen_passages([], settings) == [[]]
    assert chosen_passages(list(range(6)), settings) == [[0, 1, 2, 3, 4, 5]]
    assert chosen_passages(list(range(7)), settings) == [[0, 1, 2, 3, 4, 5], [4, 5, 6]]
    # Of eight passages, the first, one in the middle, and the last.
    many = chosen_passages(list(range(33)), settings)
    assert [part[0] for part in many] == [0, 16, 28]
    assert many[-1] == [28, 29, 30, 31, 32]


def hidden_states(ranker: PassageRanker, ids: list[int], second: int) -> list[np.ndarray]:
    import torch

    types = [0] * second + [1] * (len(ids) - second)
    with torch.no_grad():
        found = ranker.module.encoder(
            input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types]), output_hidden_states=True
        )
    return [layer[0].double().numpy() for layer in found.hidden_states]


def pieces(ranker: PassageRanker, text: str) -> list[int]:
    return list(ranker.tokenizer(text, add_special_tokens=False)["input_ids"])


def passages_of(ranker: PassageRanker, pair: Pair) -> list[tuple[list[int], int, int]]:
    """Ids of every passage, where the query ends, and where the document begins."""
    first, last = ranker.tokenizer.cls_token_id, ranker.tokenizer.sep_token_id
    query = pieces(ranker, pair.query)[: 16 - 3 - 6]
    chosen = chosen_passages(pieces(ranker, pair.document), PassageSettings(**SMALL))
    return [([first, *query, last, *part, last], 1 + len(query), 2 + len(query)) for part in chosen]


def naive_cedr(ranker: PassageRanker, pair: Pair) -> float:
    state = {name: tensor.double().numpy() for name, tensor in ranker.module.head().items()}
    centres, widths = state["kernels.centres"], state["kernels.widths"]
    counts: dict[tuple[int, int, int], float] = {}
    firsts = []
    for ids, end_query, document in passages_of(ranker, pair):
        layers = hidden_states(ranker, ids, document)
        firsts.append(layers[-1][0])
        for number, layer in enumerate(layers):
            for word in range(1, end_query):
                for kernel, (centre, width) in enumerate(zip(centres, widths, strict=True)):
                    soft = 0.0
                    for place in range(document, len(ids) - 1):
                        a, b = layer[word], layer[place]
                        cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
                        soft += float(np.exp(-0.5 * ((cosine - centre) / width) ** 2))
                    key = number, word, kernel
                    counts[key] = counts.get(key, 0.0) + soft
    features = np.zeros((len(layers), len(centres)))
    for (number, _, kernel), soft in counts.items():
        features[number, kernel] += 0.01 * np.log(soft + 1e-6)
    inputs = np.concatenate([features.ravel(), np.mean(firsts, axis=0)])
    hidden = np.maximum(0, state["combine.0.weight"] @ inputs + state["combine.0.bias"])
    return float((state["combine.2.weight"] @ hidden + state["combine.2.bias"])[0])


def naive_parade(ranker: PassageRanker, pair: Pair) -> float:
    state = {name: tensor.double().numpy() for name, tensor in ranker.module.head().items()}
    firsts = [hidden_states(ranker, ids, document)[-1][0] for ids, _, document in passages_of(ranker, pair)]
    vectors = np.array([state["first"], *firsts]) + state["places.weight"][: len(firsts) + 1]
    heads = ranker.module.encoder.config.num_attention_heads
    for number in range(2):
        vectors = naive_layer(vectors, {n.split(f"layers.{number}.")[-1]: w for n, w in state.items()}, heads)
    return float((state["combine.weight"] @ vectors[0] + state["combine.bias"])[0])


def naive_layer(vectors: np.ndarray, weights: dict[str, np.ndarray], heads: int) -> np.ndarray:
    from scipy.special import erf, softmax

    def norm(values: np.ndarray, name: str) -> np.ndarray:
        scaled = (values - values.mean(1, keepdims=True)) / np.sqrt(values.var(1, keepdims=True) + 1e-5)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    asked, keys, values = np.split(
        vectors @ weights["self_attn.in_proj_weight"].T + weights["self_attn.in_proj_bias"], 3, axis=1
    )
    size = vectors.shape[1] // heads
    parts = []
    for head in range(heads):
        mine = slice(head * size, (head + 1) * size)
        parts.append(softmax(asked[:, mine] @ keys[:, mine].T / np.sqrt(size), axis=1) @ values[:, mine])
    joined = np.concatenate(parts, axis=1) @ weights["self_attn.out_proj.weight"].T + weights["self_attn.out_proj.bias"]
    vectors = norm(vectors + joined, "norm1")
    inner = vectors @ weights["linear1.weight"].T + weights["linear1.bias"]
    inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
    return norm(vectors + inner @ weights["linear2.weight"].T + weights["linear2.bias"], "norm2")


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_a_plain_computation(kind: str, bert: Path) -> None:
    ranker = opened(kind, bert, **({"hidden": 8} if kind == "cedr" else {}))
    naive = naive_cedr if kind == "cedr" else naive_parade
    found = ranker.score(PAIRS)
    assert len(passages_of(ranker, PAIRS[-1])) == 3
    assert found == pytest.approx([naive(ranker, pair) for pair in PAIRS], abs=1e-5)
    assert len(set(found.tolist())) == len(PAIRS)


@pytest.mark.parametrize("kind", KINDS)
def test_order_and_company_of_pairs_change_no_score(kind: str, bert: Path) -> None:
    ranker = opened(kind, bert)
    found = ranker.score([*PAIRS, PAIRS[0]])
    assert found[0] == found[-1]
    assert ranker.score(PAIRS[::-1])[::-1] == pytest.approx(found[:-1], abs=2e-6)
    assert ranker.score(PAIRS[2:3]) == pytest.approx(found[2:3], abs=2e-6)
    assert ranker.score([]).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_training_saves_what_opens_again(kind: str, bert: Path, tmp_path: Path) -> None:
    instances = [
        Instance(str(n), "speed of sound", "a", f"the speed of sound {n}", "b", f"light in water {n}") for n in range(6)
    ]
    recipe = RECIPES["cedr"].changed({"batch": 2, "accumulate": 2})
    trained = []
    for run in range(2):
        ranker = opened(kind, bert)
        before = {name: tensor.clone() for name, tensor in ranker.module.state_dict().items()}
        fit(ranker, instances, recipe, seed=3, folder=tmp_path / str(run))
        trained.append(ranker)
    assert trained[0].fingerprint == trained[1].fingerprint
    after = trained[0].module.state_dict()
    moved = {name: float((after[name] - before[name]).abs().max()) for name in before}
    # Adam's first step is as long as the rate: three steps of the encoder are short, those of the head long.
    head = max(value for name, value in moved.items() if not name.startswith("encoder."))
    encoder = max(value for name, value in moved.items() if name.startswith("encoder."))
    assert 1e-3 < head < 4e-3
    assert 1e-5 < encoder < 8e-5
    assert moved["encoder.pooler.dense.weight"] == 0
    trained[0].save(tmp_path / "saved")
    again = open_ranker(str(tmp_path / "saved"), device="cpu")
    assert again.fingerprint == trained[0].fingerprint
    assert (again.score(PAIRS) == trained[0].score(PAIRS)).all()


def test_the_seed_draws_the_layers_above_the_encoder(bert: Path) -> None:
    same, other = opened("parade", bert), opened("parade", bert, seed=1)
    assert same.fingerprint == opened("parade", bert).fingerprint
    assert other.fingerprint != same.fingerprint


def test_sizes_are_those_of_the_published_models(bert: Path) -> None:
    cedr = sum(tensor.numel() for tensor in opened("cedr", bert).module.head().values())
    # Three layers of ten kernels and a vector of 32, 1,024 units, a score; ten centres and widths.
    assert cedr == (3 * 10 + 32) * 1024 + 1024 + 1024 + 1 + 20
    parade = opened("parade", bert).module.over_passages
    assert len(parade.layers) == 2


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"sequence": 513}, "513 tokens, and 'bert' reads 512"),
        ({"passage": 14, "stride": 4}, "leave no room for a query in 16"),
        ({"stride": 7}, "leave gaps"),
        ({"passages": 0}, "passages is 0"),
        ({"window": 3}, "no setting 'window'"),
        ({"passage": "long"}, "passage is 'long'"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, int], fault: str, bert: Path) -> None:
    with pytest.raises(InputError, match=fault):
        opened("cedr", bert, **settings)


def test_weights_of_another_network_are_refused(bert: Path, tmp_path: Path) -> None:
    opened("parade", bert).save(tmp_path / "parade")
    with pytest.raises(InputError, match="kind parade"):
        open_ranker(f"cedr:{tmp_path / 'parade'}", device="cpu", **SMALL)
    (tmp_path / "parade" / "ranker.json").unlink()
    with pytest.raises(InputError, match="weights of another network"):
        open_ranker(f"cedr:{tmp_path / 'parade'}", device="cpu", **SMALL)
    (tmp_path / "parade" / "head.safetensors").write_bytes(b"broken")
    with pytest.raises(InputError, match="do not fit"):
        open_ranker(f"parade:{tmp_path / 'parade'}", device="cpu", **SMALL)
