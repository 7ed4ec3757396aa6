"""Presets: analysers and model parameters under the name of the system that has them as its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from truerank.errors import InputError, OptionError
from truerank.lexical.analysis import Analyser
from truerank.lexical.expansions import BM25PRF, RM3, Axiomatic, Expansion
from truerank.lexical.index import Index
from truerank.lexical.models import BM25, Model, QueryLikelihood
from truerank.loading import decimal_number, signed_number

#: The names of the models and presets, as commands take them.
ModelName = Literal["bm25", "ql", "rm3", "axiomatic", "prf"]
PresetName = Literal["anserini", "terrier", "track-documents", "track-passages"]
MODELS: Final = get_args(ModelName)
DEFAULT_PRESET: Final = "anserini"

_ANSERINI: Final = BM25(0.9, 0.4, lengths="lucene")
_TERRIER: Final = BM25(1.2, 0.75, idf="robertson", k3=8.0)


@dataclass(frozen=True)
class Preset:
    """The defaults of a system.

    Attributes:
        name: what it is called.
        says: where it comes from, one sentence.
        analyser: how its texts become terms.
        model: its usual model.
        models: each of `MODELS` with its parameters.
    """

    name: str
    says: str
    analyser: Analyser
    model: str
    models: Mapping[str, Model | Expansion]


_AS_ANSERINI: Final[Mapping[str, Model | Expansion]] = {
    "bm25": _ANSERINI,
    "ql": QueryLikelihood(1000, "lucene"),
    "rm3": RM3(10, 10, 0.5, _ANSERINI),
    "axiomatic": Axiomatic(20, 30, 0.4, 20, 42, "whole", _ANSERINI),
    "prf": BM25PRF(20, 10, 0.2, 0.9, 0.4, _ANSERINI),
}
PRESETS: Final[dict[str, Preset]] = {
    preset.name: preset
    for preset in (
        Preset(
            "anserini",
            "Anserini: Lucene's tokeniser, 33 stopwords, Porter; BM25 with Lucene's idf and lengths.",
            Analyser("lucene", "lucene", "porter"),
            "bm25",
            _AS_ANSERINI,
        ),
        Preset(
            "terrier",
            "PyTerrier: Terrier's tokeniser, Porter, our grammar words for Terrier's list; BM25 with Robertson's idf.",
            Analyser("terrier", "grammar", "porter"),
            "bm25",
            {
                "bm25": _TERRIER,
                "ql": QueryLikelihood(2500),
                "rm3": RM3(10, 3, 0.6, _TERRIER),
                "axiomatic": Axiomatic(base=_TERRIER),
                "prf": BM25PRF(20, 10, 0.2, 1.2, 0.75, _TERRIER),
            },
        ),
        Preset(
            "track-documents",
            "TREC 2019 Deep Learning, document candidates: Indri's query likelihood, Krovetz, stopwords removed.",
            Analyser("alphanumeric", "grammar", "krovetz"),
            "ql",
            {
                "bm25": BM25(),
                "ql": QueryLikelihood(2500),
                "rm3": RM3(base=QueryLikelihood(2500)),
                "axiomatic": Axiomatic(base=QueryLikelihood(2500)),
                "prf": BM25PRF(base=QueryLikelihood(2500)),
            },
        ),
        Preset(
            "track-passages",
            "TREC 2019 Deep Learning, passage candidates: BM25 without stemming; the rest as Anserini.",
            Analyser("lucene", "lucene", "none"),
            "bm25",
            _AS_ANSERINI,
        ),
    )
}


def preset_named(name: str) -> Preset:
    """The preset of this name.

    Raises:
        InputError: there is none.
    """
    if name not in PRESETS:
        raise OptionError("preset", f"unknown preset '{name}'", f"one of {', '.join(PRESETS)}")
    return PRESETS[name]


def analyser_of(
    preset: str = DEFAULT_PRESET,
    *,
    tokeniser: str | None = None,
    stopwords: str | None = None,
    stemmer: str | None = None,
) -> Analyser:
    """The analyser of a preset, parts of it changed; see `Analyser`.

    Raises:
        InputError: an unknown name, or a file of stopwords that cannot be read.
        MissingExtraError: it needs the Krovetz stemmer, which is not installed.
    """
    own = preset_named(preset).analyser
    chosen = Analyser(tokeniser or own.tokeniser, stopwords or own.stopwords, stemmer or own.stemmer)
    chosen("checks that the stemmer is there")
    return chosen


def require_analyser(index: Index, preset: str) -> None:
    """Refuses an index whose texts became terms in another way than the preset's.

    Raises:
        InputError: it is one; the message names both.
    """
    own = preset_named(preset).analyser
    if index.analyser.name != own.name:
        raise InputError(
            f"the index has another analyser ({index.analyser.name}) than the preset {preset} ({own.name})",
            "build it with this preset, name the preset it was built with, or allow it with `any_analyser`",
            where=index.folder,
        )


def model_of(
    preset: str = DEFAULT_PRESET, model: str = "", parameters: Mapping[str, Any] | None = None
) -> Model | Expansion:
    """A model with the parameters of a preset, some of them changed.

    Args:
        preset: one of `PRESETS`.
        model: one of `MODELS`; empty: the preset's usual one.
        parameters: new values by name; those of the first retrieval of an expansion as `base.k1`.

    Raises:
        InputError: an unknown name, or a value out of its range or of the wrong kind.
    """
    found = preset_named(preset)
    name = model or found.model
    if name not in found.models:
        raise OptionError("model", f"unknown model '{name}'", f"one of {', '.join(MODELS)}")
    chosen: Model | Expansion = changed(found.models[name], parameters or {})
    return chosen


def changed(model: Any, parameters: Mapping[str, Any]) -> Any:
    """A model with some of its parameters changed; arguments and errors as in `model_of`."""
    known = {part.name: part for part in fields(model) if part.name != "base"}
    own: dict[str, Any] = {}
    base: dict[str, Any] = {}
    for name, value in parameters.items():
        inner = name.removeprefix("base.")
        if name in known:
            may_be_none = value is None and known[name].default is None
            own[name] = None if may_be_none else _valued(name, value, getattr(model, name))
        elif hasattr(model, "base") and inner in {part.name for part in fields(model.base)}:
            base[inner] = value
        else:
            there = [*known, *(f"base.{part.name}" for part in fields(model.base))] if hasattr(model, "base") else known
            raise OptionError("set_", f"the model has no parameter '{name}'", f"there are {', '.join(there)}")
    values = {part: getattr(model, part) for part in known} | own
    if hasattr(model, "base"):
        values["base"] = changed(model.base, base)
    return type(model)(**values)


def _valued(name: str, value: Any, now: Any) -> Any:
    """The value as the parameter's kind: a number where it is one now."""
    if isinstance(now, str):
        return str(value)
    number = signed_number(str(value)) if isinstance(now, int) else decimal_number(str(value))
    if number is None:
        kind = "an integer" if isinstance(now, int) else "a number"
        raise OptionError("set_", f"{name}: '{value}' is not {kind}", "write NAME=NUMBER")
    return number
