"""Encoders on sentence-transformers (torch): for every model that it knows, and for GPUs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from truerank.errors import MissingExtraError, OptionError
from truerank.vectors.encoders.base import EncoderSpec, OpenedEncoder, Vectors
from truerank.vectors.encoders.graph_encoder import fingerprint, to_unit_length

_CPU_BATCH: Final = 32
_GPU_BATCH: Final = 512


class SentenceTransformerEncoder(OpenedEncoder):
    """A `SentenceTransformer`, on a GPU where there is one.

    Args:
        place: a local folder or a Hugging Face id.
        name: how the encoder is called in results.
        spec: how the encoder was asked for; "fp16" and "bf16" are for GPUs.
    """

    def __init__(self, place: str, name: str, spec: EncoderSpec) -> None:
        try:
            import sentence_transformers
            import torch
        except ImportError as error:
            raise MissingExtraError("the torch backend", "neural") from error
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
        self._batch = _CPU_BATCH if device == "cpu" else _GPU_BATCH
        versions = f"torch {torch.__version__}, sentence-transformers {sentence_transformers.__version__}"
        key = fingerprint(
            _content(model), str(model), model.prompts, model.default_prompt_name, spec.precision,
            versions, device.partition(":")[0], self._batch,
        )  # fmt: skip
        # Another process takes the same device, or none: vectors of another kind of device would differ.
        super().__init__(replace(spec, device=device), name=name, dimension=_dimension(model), fingerprint=key)

    def pieces(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """How many tokens each text has, up to the length that the model reads and without special ones, and how many
        of them are unknown."""
        tokenizer = self._model.tokenizer
        found = tokenizer(_whole(texts), add_special_tokens=False, truncation=True)["input_ids"]
        return [(len(ids), ids.count(tokenizer.unk_token_id)) for ids in found]

    def _encode(self, texts: Sequence[str]) -> Vectors:
        vectors = self._model.encode(
            _whole(texts),
            batch_size=self._batch,
            show_progress_bar=False,
            convert_to_tensor=True,
            convert_to_numpy=False,
        )
        return to_unit_length(vectors.float().cpu().numpy().copy())


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
