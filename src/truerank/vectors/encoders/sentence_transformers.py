"""Encoders on sentence-transformers (torch): for every model that it knows, and for GPUs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError, needed_for
from truerank.vectors.encoders.base import EncoderSpec, OpenedEncoder, Vectors
from truerank.vectors.encoders.graph_encoder import fingerprint, to_unit_length
from truerank.vectors.encoders.tokenizing import TextTokenizer, TokenIds

_CPU_BATCH: Final = 32
_GPU_BATCH: Final = 512
#: Tokens of a batch on a GPU, which is kept busy by many short texts and has room for few long ones.
_GPU_TOKENS: Final = 1 << 16


class SentenceTransformerEncoder(OpenedEncoder):
    """A `SentenceTransformer`, on a GPU where there is one.

    Args:
        place: a local folder or a Hugging Face id.
        name: how the encoder is called in results.
        spec: how the encoder was asked for; "fp16" and "bf16" are for GPUs.
    """

    def __init__(self, place: str, name: str, spec: EncoderSpec) -> None:
        with needed_for("the torch backend", "neural"):
            import sentence_transformers
            import torch
        device = _device(torch, spec)
        try:
            model: Any = sentence_transformers.SentenceTransformer(place, device=device)
        except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
            message = " ".join(str(error).split())[:300]
            remedy = "give a folder or id of a sentence-transformers model, or the encoder 'packaged'"
            raise OptionError("encoder", f"'{name}' cannot be loaded ({message})", remedy) from error
        if spec.precision != "fp32":
            model = model.half() if spec.precision == "fp16" else model.bfloat16()
        model.eval()
        if spec.threads is not None and device == "cpu":
            torch.set_num_threads(spec.threads)
        self._model = model
        self._inputs = _Inputs.of(model)
        self._batch, self._tokens = (_CPU_BATCH, 0) if device == "cpu" else (_GPU_BATCH, _GPU_TOKENS)
        versions = f"torch {torch.__version__}, sentence-transformers {sentence_transformers.__version__}"
        key = fingerprint(
            _content(model), str(model), model.prompts, model.default_prompt_name, spec.precision,
            versions, device.partition(":")[0], self._batch, self._tokens, self._inputs is not None,
        )  # fmt: skip
        # Another process takes the same device, or none: vectors of another kind of device would differ.
        super().__init__(replace(spec, device=device), name=name, dimension=_dimension(model), fingerprint=key)

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """As `TextTokenizer.pieces`."""
        if self._inputs is not None:
            return self._inputs.tokenizer.pieces(texts)
        tokenizer = self._model.tokenizer
        found = tokenizer(_whole(texts), add_special_tokens=False, truncation=True)["input_ids"]
        return [(len(ids), ids.count(tokenizer.unk_token_id)) for ids in found]

    def _encode(self, texts: Sequence[str]) -> Vectors:
        if self._inputs is None:
            batches = self._model.encode(
                _whole(texts),
                batch_size=self._batch,
                show_progress_bar=False,
                convert_to_tensor=True,
                convert_to_numpy=False,
            )
            return to_unit_length(batches.float().cpu().numpy().copy())
        import torch

        ids = self._inputs.tokenizer.ids(texts)
        order = places = np.argsort(-ids.lengths, kind="stable")
        found = []
        with torch.inference_mode():
            while len(order):
                size = max(1, self._tokens // max(1, int(ids.lengths[order[0]]))) if self._tokens else self._batch
                some, order = order[:size], order[size:]
                batch = self._inputs.batch(ids, some)
                there = {name: _moved(value, self._spec.device) for name, value in batch.items()}
                found.append(self._model(there)["sentence_embedding"].float())
            # One wait for the device, at the end.
            vectors = torch.cat(found).cpu().numpy()
        return to_unit_length(vectors[np.argsort(places)])


def _moved(value: Any, device: str | None) -> Any:
    return value.to(device, non_blocking=True) if hasattr(value, "to") else value


@dataclass(frozen=True)
class _Inputs:
    """What a model is given for texts: the same that `transformers` makes, which takes ten times as long.

    Attributes:
        tokenizer: makes the ids.
        names: of the tensors.
        extra: what the model is given beside them.
        padding: the id of the padding token.
        left: padding stands before a text.
    """

    tokenizer: TextTokenizer
    names: tuple[str, ...]
    extra: dict[str, Any]
    padding: int
    left: bool

    @classmethod
    def of(cls, model: Any) -> _Inputs | None:
        """None where the model has no tokenizer of the library `tokenizers`, or makes other inputs than these."""
        import tokenizers
        import torch

        own: Any = getattr(model, "tokenizer", None) if type(model[0]).__name__ == "Transformer" else None
        backend, padding = getattr(own, "backend_tokenizer", None), getattr(own, "pad_token_id", None)
        if backend is None or padding is None or model.truncate_dim is not None:
            return None
        if model.default_prompt_name is not None and model.prompts.get(model.default_prompt_name):
            return None
        limits = [limit for limit in (model.max_seq_length, own.model_max_length) if limit and limit < _ANY_LENGTH]
        copy = tokenizers.Tokenizer.from_str(backend.to_str())
        tokenizer = TextTokenizer(copy, min(limits, default=None), own.truncation_side)
        probes = [*_PROBES, " ".join(filter(None, own.all_special_tokens)), "long " * (min(limits, default=0) + 1)]
        theirs = (getattr(model, "preprocess", None) or model.tokenize)(probes)
        tensors = {name: value for name, value in theirs.items() if isinstance(value, torch.Tensor)}
        extra = {name: value for name, value in theirs.items() if name not in tensors}
        if not set(tensors) <= set(_NAMES) or not all(isinstance(value, str | bool) for value in extra.values()):
            return None
        inputs = cls(tokenizer, tuple(tensors), extra, padding, own.padding_side == "left")
        ours = inputs.batch(tokenizer.ids(probes), np.arange(len(probes)))
        return inputs if all(ours[name].tolist() == value.tolist() for name, value in tensors.items()) else None

    def batch(self, ids: TokenIds, rows: NDArray[np.intp]) -> dict[str, Any]:
        """The inputs for some texts, as long as the longest of them."""
        import torch

        lengths = ids.lengths[rows][:, None]
        width = int(lengths.max())
        places = np.arange(width) - (width - lengths if self.left else 0)
        real = (places >= 0) & (places < lengths)
        tokens = np.full(real.shape, self.padding, np.int64)
        tokens[real] = ids.flat[(ids.starts[rows][:, None] + places)[real]]
        values = (tokens, real.astype(np.int64), np.zeros_like(tokens))
        named = dict(zip(_NAMES, map(torch.from_numpy, values), strict=True))
        return {**{name: named[name] for name in self.names}, **self.extra}


_NAMES: Final = ("input_ids", "attention_mask", "token_type_ids")
#: Tokenizers without a limit give a number above this one.
_ANY_LENGTH: Final = 1 << 24
#: Texts on which a model's own inputs are compared with these.
_PROBES: Final = ("", " Two  words ", "Größe ÉTÉ e\u0301", "漢字 हिन्दी ☎", "a\tb\n1,000.5", "\u200b\x00")


def _whole(texts: Sequence[str]) -> list[str]:
    """Texts without halves of surrogate pairs, which are not characters: the tokenizers refuse them."""
    return [text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for text in texts]


def _device(torch: Any, spec: EncoderSpec) -> str:
    device = spec.device or ("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = device.partition(":")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        fault = f"'{device}' is asked for, and torch sees {torch.cuda.device_count()} CUDA devices"
        raise OptionError("device", fault, "use --device cpu, or install a torch build for your GPU")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise OptionError("device", "'mps' is asked for, and torch does not see it", "use --device cpu")
    if spec.precision == "int8" or (spec.precision != "fp32" and kind == "cpu"):
        remedy = "use --precision fp32, or --backend openvino for int8 and bf16"
        raise OptionError("precision", f"backend 'torch' does not run {spec.precision} on the {kind.upper()}", remedy)
    return device


def _dimension(model: Any) -> int:
    # The method was renamed in sentence-transformers 5.4 and 6; the old name may go.
    measure = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    dimension = measure()
    return int(dimension if dimension is not None else model.encode([""]).shape[1])


def _content(model: Any) -> str:
    """Hash over all weights and the tokenizer."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().float().cpu().numpy().tobytes())
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    digest.update((backend.to_str() if backend is not None else repr(model.tokenizer)).encode())
    return digest.hexdigest()
