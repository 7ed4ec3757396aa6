"""Checkpoints from Hugging Face ids and local folders: configuration, tokenizer, weights, and what kind they are."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import json_file
from truerank.options import Runtime
from truerank.vectors.encoders.model_folder import PACKAGED, PACKAGED_MODEL, packaged_folder

_HUB_ID: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_LOAD_FAULTS: Final = (OSError, ValueError, ImportError, KeyError, RuntimeError, AttributeError, TypeError)
_REMEDY: Final = "give KIND:FOLDER, KIND:ID of Hugging Face, or a folder that 'train' wrote"


class Checkpoint:
    """A model as it is named (a folder, a Hugging Face id, or `packaged`), before it is loaded."""

    def __init__(self, name: str) -> None:
        folder = Path(name).expanduser()
        if name == PACKAGED:
            self.place, self.name = str(packaged_folder()), PACKAGED_MODEL
        elif folder.is_dir():
            self.place, self.name = str(folder.resolve()), folder.resolve().name
        elif _HUB_ID.fullmatch(name):
            self.place, self.name = name, name
        else:
            raise OptionError("model", f"no folder '{name}', and it is not a Hugging Face id", _REMEDY)

    def config(self) -> Any:
        return self.load(lambda transformers: transformers.AutoConfig.from_pretrained(self.place))

    def tokenizer(self) -> Any:
        found = self.load(lambda transformers: transformers.AutoTokenizer.from_pretrained(self.place))
        if getattr(found, "backend_tokenizer", None) is None:
            raise OptionError("model", f"'{self.name}' has no fast tokenizer", "convert it with transformers")
        # Lengths are this package's business: what the file says would cut without a word.
        found.backend_tokenizer.no_truncation()
        found.backend_tokenizer.no_padding()
        return found

    def module(self, auto_class: str, **options: Any) -> Any:
        """The model in full precision, ready to score; `auto_class` is a class of transformers."""
        neural()
        import torch

        options = {"dtype": torch.float32, **options}
        found = self.load(lambda library: getattr(library, auto_class).from_pretrained(self.place, **options))
        return found.eval()

    def load(self, read: Callable[[Any], Any]) -> Any:
        """What `read` makes of transformers; its errors become one line."""
        transformers = neural()
        try:
            with quiet():
                return read(transformers)
        except _LOAD_FAULTS as error:
            message = " ".join(str(error).split())[:300]
            raise OptionError("model", f"'{self.name}' cannot be loaded ({message})", _REMEDY) from error

    def file(self, name: str) -> Path | None:
        """A file of the model, fetched where it is not local; None where the model has none of that name."""
        folder = Path(self.place)
        if folder.is_dir():
            return folder / name if (folder / name).is_file() else None
        with needed_for(f"'{self.name}', which is no folder here and would be a model of Hugging Face,", "hub"):
            from huggingface_hub import hf_hub_download
            from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        try:
            return Path(hf_hub_download(self.place, name))
        except LocalEntryNotFoundError as error:
            raise InputError(f"'{self.name}' cannot be fetched", "check the name and the network") from error
        except EntryNotFoundError:
            return None
        except Exception as error:  # the HTTP library under huggingface_hub changes, and so do its errors
            fault = f"'{self.name}' cannot be fetched ({type(error).__name__})"
            raise OptionError("model", fault, "check the name and the network") from error

    def json(self, name: str) -> Any:
        """A JSON file of the model; None where it has none of that name."""
        path = self.file(name)
        if path is None:
            return None
        return json_file(path, "fetch the model again")

    def tensors(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of the tensors that the weights hold, as torch tensors in full precision."""
        neural()
        import torch

        if path := self.file("model.safetensors"):
            from safetensors import safe_open

            with safe_open(str(path), "pt") as weights:
                return {name: weights.get_tensor(name).float() for name in names if name in weights.keys()}  # noqa: SIM118
        if path := self.file("pytorch_model.bin"):
            state = torch.load(str(path), map_location="cpu", weights_only=True)
            return {name: state[name].float() for name in names if name in state}
        raise InputError("no model.safetensors or pytorch_model.bin", "give a whole checkpoint", where=self.place)


def neural() -> Any:
    with needed_for("this ranker", "neural"):
        import torch  # noqa: F401
        import transformers
    return transformers


def kind_of(name: str) -> str:
    """The kind of ranker that a checkpoint's configuration tells."""
    checkpoint = Checkpoint(name)
    modules = checkpoint.json("modules.json")
    config: Mapping[str, Any] = checkpoint.json("config.json") or {}
    architecture = " ".join(config.get("architectures") or ())
    if "ColBERT" in architecture or checkpoint.file("artifact.metadata") is not None:
        return "colbert"
    if "ForSequenceClassification" in architecture:
        return "monobert"
    if "T5ForConditionalGeneration" in architecture:
        return "monot5"
    if modules is not None:
        return "ance"
    fault = f"the configuration of '{checkpoint.name}' does not say what kind of ranker it is"
    raise OptionError("model", fault, f"write KIND:{name} with one of monobert, monot5, ance, colbert")


def device_of(runtime: Runtime) -> str:
    neural()
    import torch

    device = runtime.device or ("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = device.partition(":")
    there = kind in ("cpu", "cuda", "mps") and (not number or number.isdigit())
    if there and kind != "cpu":
        there = int(number or 0) < torch.cuda.device_count() if kind == "cuda" else torch.backends.mps.is_available()
    if not there:
        raise OptionError("device", f"torch sees no device '{device}'", "use `device` cpu")
    if kind == "cpu" and runtime.precision != "fp32":
        raise OptionError("precision", f"{runtime.precision} is for GPUs", "use fp32")
    if kind == "cpu" and runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    return device


def in_precision(module: Any, runtime: Runtime, device: str) -> Any:
    import torch

    kinds = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    return module.to(device=device, dtype=kinds[runtime.precision]).eval()


def on_device(values: NDArray[Any], device: str) -> Any:
    """An array as a tensor on a device; to a GPU from pinned memory, so that the copy does not wait for what runs."""
    import torch

    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.startswith("cuda") else tensor.to(device)


def collected(values: Sequence[Any]) -> list[NDArray[np.float32]]:
    """What was computed batch by batch, as arrays; a GPU is waited for once, after the last batch."""
    import torch

    if not values:
        return []
    return np.split(torch.cat(list(values)).float().cpu().numpy(), np.cumsum([len(each) for each in values])[:-1])


def without_pooler(encoder: Any) -> Any:
    """The encoder without the layer above its first token, which nothing here reads.

    Checkpoints that lack it would get a random one, and with it another fingerprint, each time they are opened.
    """
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def content_hash(module: Any, tokenizer: Any) -> str:
    """SHA-256 over all weights and the tokenizer."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    found.update(tokenizer.backend_tokenizer.to_str().encode())
    return found.hexdigest()


def clean(text: str) -> str:
    """The text without halves of characters, which tokenizers refuse."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch draws from this seed; afterwards its state is what it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers prints nothing: stderr belongs to progress."""
    logging = neural().utils.logging
    before = logging.get_verbosity()
    bars = getattr(logging, "is_progress_bar_enabled", lambda: False)()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
