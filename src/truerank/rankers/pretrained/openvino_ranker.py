"""Rankers whose networks may run in OpenVINO, on the CPU in full precision or in eight bits, and their networks."""

from __future__ import annotations

import tempfile
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import MissingExtraError, OptionError
from truerank.rankers.base import Runtime
from truerank.rankers.batches import length_batches, restore
from truerank.rankers.pretrained.checkpoints import CPU_PRECISIONS, quiet
from truerank.rankers.pretrained.torch_ranker import TokenRow, TorchRanker, packed_pairs, pair_types
from truerank.vectors.encoders.cache import publish_folder, user_cache_folder
from truerank.vectors.encoders.openvino import bf16_is_native, openvino_package, quantising_fault, split_products
from truerank.vectors.encoders.tokenizing import WIDTHS
from truerank.work.engines import processors

#: Families whose layers are built alike, and whose heads read the first token.
FAMILIES: Final = ("bert", "electra", "roberta", "xlm-roberta", "camembert")
#: Added to the score of a token of another text: its share becomes 0.
_APART: Final = -1e9


def run_encoder(module: Any, ids: Any, mask: Any | None, types: Any | None) -> Any:
    """The outputs of a classifier for token ids, mask (1 for tokens, None without padding) and types of one shape."""
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return module(**{name: value for name, value in given.items() if value is not None}).logits


def shorten_last_layer(module: Any) -> bool:
    """Makes the last layer compute the first token only, while the model is not in training."""
    if module.config.model_type not in FAMILIES or getattr(module.config, "is_decoder", False):
        return False
    last = module.base_model.encoder.layer[-1]
    plain = last.forward

    def forward(hidden: Any, attention_mask: Any | None = None, *arguments: Any, **options: Any) -> Any:
        if last.training:
            return plain(hidden, attention_mask, *arguments, **options)
        return _run_layer(last, hidden[:, :1], hidden, None if attention_mask is None else attention_mask[:, :, :1])

    last.forward = forward
    return True


def run_packed(module: Any, tokens: Any, pooling: Any) -> Any:
    """The outputs of a classifier for rows of several texts each, packed for `PackedBatch`: (rows, texts, outputs).

    `tokens`, shape (rows, 3 or 4, width), has ids, positions, numbers of texts, and types where the model reads them;
    `pooling`, shape (rows, texts, width), is 1 for the first token of each text.
    """
    base = module.base_model
    given = {"input_ids": tokens[:, 0], "position_ids": tokens[:, 1], "token_type_ids": tokens[:, 3:].sum(dim=1)}
    hidden = base.embeddings(**given)
    if hasattr(base, "embeddings_project"):
        hidden = base.embeddings_project(hidden)
    apart = (tokens[:, 2, :, None] != tokens[:, 2, None, :]).to(hidden.dtype) * _APART
    *layers, last = base.encoder.layer
    for layer in layers:
        hidden = _run_layer(layer, hidden, hidden, apart[:, None])
    firsts = _run_layer(last, pooling @ hidden, hidden, (pooling @ apart)[:, None])
    rows, texts, size = firsts.shape
    each = firsts.reshape(rows * texts, 1, size)
    pooler = getattr(base, "pooler", None)
    outputs = module.classifier(each if pooler is None else pooler(each))
    return outputs.reshape(rows, texts, -1)


def _run_layer(layer: Any, wanted: Any, hidden: Any, mask: Any | None) -> Any:
    """What a layer makes of the wanted tokens, which attend to all of them; shape as `wanted`."""
    from torch.nn.functional import scaled_dot_product_attention

    attention = layer.attention.self
    rows, size = hidden.shape[0], attention.attention_head_size

    def by_head(values: Any) -> Any:
        return values.view(rows, -1, attention.num_attention_heads, size).transpose(1, 2)

    mixed = scaled_dot_product_attention(
        by_head(attention.query(wanted)),
        by_head(attention.key(hidden)),
        by_head(attention.value(hidden)),
        attn_mask=mask,
        scale=size**-0.5,
    )
    together = mixed.transpose(1, 2).flatten(2)
    return layer.feed_forward_chunk(layer.attention.output(together, wanted))


#: Tokens in a batch: some dozen passages, so that a batch fills the processors without holding much.
BATCH_TOKENS: Final = 1024
_REQUESTS: Final = 2
#: Code is compiled for every shape and kept: without a bound, memory grows with the number of lengths.
_SHAPES_KEPT: Final = 64
_FEWEST_ROWS: Final = 10


class OpenVinoNetwork:
    """Runs rows of token ids and types through a network that was converted from torch.

    `run` gives the outputs of `module` for ids and token types (None where it reads none), shape (rows, tokens) each;
    where rows are packed, for tokens and pooling of a `PackedBatch`. `calibration` has the rows from which eight bits
    learn their ranges, each ids and types, shape (2, tokens); that graph is kept under `key` in the user's cache.
    """

    def __init__(
        self,
        module: Any,
        run: Callable[[Any, Any, Any], Any],
        *,
        types: bool,
        threads: int | None,
        calibration: Sequence[NDArray[np.int64]] | None = None,
        key: str = "",
        precision: str = "fp32",
        packed: bool = False,
    ) -> None:
        openvino = openvino_package()
        streams = threads or processors()
        options = {
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": streams,
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": _SHAPES_KEPT,
        }
        # The core has the code of some operators: it has to live as long as the network.
        self._core = openvino.Core()
        try:
            model = _converted(openvino, module, run, types=types, packed=packed)
            if calibration is not None:
                if len(calibration) < _FEWEST_ROWS:
                    fault = f"int8 learns its ranges from pairs, and was given {len(calibration)}"
                    raise OptionError("precision", fault, "give some 250 pairs of the kind to be scored")
                folder = user_cache_folder() / "int8-rankers" / key[:32]
                if not (folder / "int8.xml").is_file():
                    publish_folder(folder, lambda place: _quantise(openvino, model, calibration, place / "int8.xml"))
                model = openvino.Core().read_model(str(folder / "int8.xml"))
            if precision == "bf16x3":
                split_products(openvino, self._core, model)
            compiled = self._core.compile_model(model, "CPU", options)
        except RuntimeError as error:
            message = " ".join(str(error).split())[:300]
            remedy = "use --backend torch"
            raise OptionError("backend", f"OpenVINO cannot run this model ({message})", remedy) from error
        self._queue: Any = openvino.AsyncInferQueue(compiled, _REQUESTS * streams)
        self._lock = threading.Lock()

    def run(self, batches: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[np.float32]]:
        """What the network says of each batch, shape (rows, outputs), or (rows, texts, outputs) where rows are packed.

        A batch is ids and types, shape (rows, 2, tokens), or tokens and pooling of a `PackedBatch`.
        """
        found: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(batches)

        def keep(request: Any, number: int) -> None:
            found[number] = request.get_output_tensor(0).data.copy()

        with self._lock:
            self._queue.set_callback(keep)
            try:
                for number, batch in enumerate(batches):
                    inputs = {place: np.ascontiguousarray(values) for place, values in enumerate(batch)}
                    self._queue.start_async(inputs, number)
            finally:
                self._queue.wait_all()
        return found


def has_openvino() -> bool:
    try:
        openvino_package()
    except MissingExtraError:
        return False
    return True


def _converted(openvino: Any, module: Any, run: Callable[[Any, Any, Any], Any], *, types: bool, packed: bool) -> Any:
    import torch

    class Stacked(torch.nn.Module):  # type: ignore[misc]
        """Takes ids and types as one tensor, so that a graph has one input."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, stacked: Any) -> Any:
            return run(self.inner, stacked[:, 0], stacked[:, 1] if types else None)

    class Packed(torch.nn.Module):  # type: ignore[misc]
        """Takes tokens and pooling."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, tokens: Any, pooling: Any) -> Any:
            return run(self.inner, tokens, pooling)

    example: Any = torch.ones((2, 2, 12), dtype=torch.long)
    example[:, 1] = 0
    shapes: list[Any] = [[-1, 2, -1]]
    network: Any = Stacked()
    if packed:
        channels = 4 if types else 3
        example = (torch.zeros((2, channels, 12), dtype=torch.long), torch.ones((2, 3, 12)))
        shapes = [[-1, channels, -1], [-1, -1, -1]]
        network = Packed()
    with torch.no_grad(), quiet(), warnings.catch_warnings():
        # Tracing warns of branches that depend on shapes; tests compare the graph at other shapes than the traced one.
        warnings.simplefilter("ignore")
        return openvino.convert_model(network.eval(), example_input=example, input=shapes)


def _quantise(openvino: Any, model: Any, rows: Sequence[NDArray[np.int64]], target: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        graph = Path(temporary) / "fp32.xml"
        openvino.save_model(model, str(graph), compress_to_fp16=False)
        fault = quantising_fault(graph, model.inputs[0].get_any_name(), [row.tolist() for row in rows], target)
    if "No module named 'nncf'" in fault:
        raise MissingExtraError("int8 with OpenVINO", "fast")
    if fault:
        raise OptionError("precision", f"no int8 graph could be made ({fault})", "use `precision` fp32")


#: Tokens in a batch whose rows hold several pairs.
PACKED_TOKENS: Final = 1024


class OpenVinoRanker(TorchRanker):
    """A ranker that runs in OpenVINO where that is installed, or asked for; trained it is in torch."""

    in_openvino: ClassVar[bool] = True
    #: Whether `run_packed` is there: a row may hold several texts.
    has_packed: ClassVar[bool] = False

    def __init__(self, module: Any, tokenizer: Any, name: str, runtime: Runtime, settings: Mapping[str, Any]) -> None:
        super().__init__(module, tokenizer, name, runtime, settings)
        self._converted = _runs_converted(self.config.model_type, self.device, runtime)
        self._compiled: _Compiled | None = None

    @property
    @abstractmethod
    def config(self) -> Any:
        """The configuration of the transformer."""

    @property
    @abstractmethod
    def reads_types(self) -> bool:
        """Whether the network reads token types."""

    @staticmethod
    @abstractmethod
    def run_network(module: Any, ids: Any, types: Any | None) -> Any:
        """What the network makes of rows without padding, shape (rows, outputs); this is what is converted."""

    @staticmethod
    def run_packed(module: Any, tokens: Any, pooling: Any) -> Any:
        """What the network makes of rows that hold several texts, shape (rows, texts, outputs)."""
        raise NotImplementedError

    @abstractmethod
    def calibration_rows(self) -> list[TokenRow]:
        """The rows of the pairs that eight bits learn their ranges from."""

    @property
    def is_converted(self) -> bool:
        return self._converted

    def arithmetic(self) -> str:
        """What computes, and of OpenVINO its version, for its kernels decide the last digits."""
        return f"openvino {openvino_package().__version__}" if self._converted else "torch"

    @property
    def packs(self) -> bool:
        """Whether rows hold several texts: in full precision and in eight bits each text is a row."""
        short = int(self._settings.get("max_tokens", 0)) <= max(WIDTHS)
        return self.has_packed and short and self.runtime.precision in ("bf16", "bf16x3")

    def converted_outputs(self, rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        """What OpenVINO makes of rows, shape (rows, outputs); rows of one length run together, unpadded."""
        if self.packs:
            return self._packed_outputs(rows)
        lengths = np.fromiter((len(row.ids) for row in rows), np.int64, len(rows))
        batches = length_batches(lengths, tokens=BATCH_TOKENS)
        return restore(batches, self._network().run([(_stacked([rows[number] for number in one]),) for one in batches]))

    def _packed_outputs(self, rows: Sequence[TokenRow]) -> NDArray[np.float32]:
        # Of these families RoBERTa and its kin count positions after the padding token.
        padding = None if self.config.model_type in ("bert", "electra") else int(self.config.pad_token_id)
        batches = packed_pairs(rows, padding, types=self.reads_types, tokens=PACKED_TOKENS)
        outputs = self._network().run([(batch.tokens, batch.pooling) for batch in batches])
        found = np.empty((len(rows), outputs[0].shape[-1]), np.float32)
        for batch, values in zip(batches, outputs, strict=True):
            found[batch.texts[batch.texts >= 0]] = values[batch.texts >= 0]
        return found

    def _network(self) -> OpenVinoNetwork:
        # Training changes weights in place, and torch counts that: what was compiled before is then out of date.
        version = tuple(parameter._version for parameter in self.module.parameters())
        if self._compiled is None or self._compiled.version != version:
            low = self.runtime.precision == "int8"
            training = self.module.training
            network = OpenVinoNetwork(
                self.module.eval(),
                self.run_packed if self.packs else self.run_network,
                types=self.reads_types,
                threads=self.runtime.threads,
                calibration=[_stacked([row])[0] for row in self.calibration_rows()] if low else None,
                key=self.fingerprint if low else "",
                precision=self.runtime.precision,
                packed=self.packs,
            )
            self.module.train(training)
            self._compiled = _Compiled(version, network)
        return self._compiled.network


class _Compiled(NamedTuple):
    """A compiled network, and the version of the weights that it was made from."""

    version: tuple[int, ...]
    network: OpenVinoNetwork


def _runs_converted(family: str, device: str, runtime: Runtime) -> bool:
    on_cpu = runtime.precision in ("bf16", "bf16x3") and device == "cpu"
    wanted = runtime.backend == "openvino" or runtime.precision == "int8" or on_cpu
    possible = device == "cpu" and family in FAMILIES
    if runtime.precision in CPU_PRECISIONS and runtime.backend == "torch":
        raise OptionError("backend", f"{runtime.precision} runs in OpenVINO", "use `backend` openvino or auto")
    if wanted and not possible:
        fault = f"OpenVINO does not run '{family}' on {device} here"
        raise OptionError("backend", fault, "use `backend` torch and fp32, or `device` cpu")
    if wanted:
        openvino_package()
    if on_cpu and not bf16_is_native():
        raise OptionError("precision", "this processor has no bf16 products", "use fp32 or int8")
    return wanted or (possible and runtime.backend == "auto" and has_openvino())


def _stacked(rows: Sequence[TokenRow]) -> NDArray[np.int64]:
    """Rows of one length as ids and types, shape (rows, 2, tokens)."""
    ids = np.array([row.ids for row in rows], np.int64)
    return np.stack((ids, pair_types(rows, ids.shape[1])), axis=1)
