"""Rankers whose networks may run in OpenVINO: on the CPU, in full precision or in eight bits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.rankers.base import Runtime
from truerank.rankers.batches import length_batches, restore
from truerank.rankers.pretrained.first_token import FAMILIES
from truerank.rankers.pretrained.openvino_network import BATCH_TOKENS, OpenVinoNetwork, has_openvino
from truerank.rankers.pretrained.pair_frames import packed_pairs, pair_types
from truerank.rankers.pretrained.torch_ranker import TokenRow, TorchRanker
from truerank.vectors.encoders.openvino import bf16_is_native, openvino_package
from truerank.vectors.encoders.packing import WIDTHS

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
        """What the network makes of rows without padding, shape (rows, outputs); this is what is converted.

        Args:
            ids: token ids, shape (rows, tokens).
            types: token types, the same shape; None where it reads none.
        """

    @staticmethod
    def run_packed(module: Any, tokens: Any, pooling: Any) -> Any:
        """What the network makes of rows that hold several texts, shape (rows, texts, outputs)."""
        raise NotImplementedError

    @abstractmethod
    def calibration_rows(self) -> list[TokenRow]:
        """The rows of the pairs that eight bits learn their ranges from."""

    @property
    def is_converted(self) -> bool:
        """Whether scores come from OpenVINO."""
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
    if runtime.precision in ("int8", "bf16x3") and runtime.backend == "torch":
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
