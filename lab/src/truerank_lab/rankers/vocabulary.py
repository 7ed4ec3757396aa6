"""Vocabularies and word vectors: texts to numbers, and of each number its vector and how rare it is."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import json_file
from truerank.sources.lines import numbered_lines
from truerank.vectors.encoders.model_folder import PACKAGED, packaged_folder
from truerank.vectors.encoders.weights import file_hash, open_weights, weight_files
from truerank.work.artifacts import atomic_path, digest, hash_file, write_text

Floats = NDArray[np.float32]

#: Names that the table of input embeddings has in checkpoints, the likeliest first.
_TABLES: Final = ("word_embeddings.weight", "embed_tokens.weight", "shared.weight", "wte.weight", "embeddings.weight")


class WordTable(NamedTuple):
    """Words and their vectors, shape (words, dimension)."""

    words: tuple[str, ...]
    vectors: Floats


def read_word_vectors(path: str | Path, keep: Container[str]) -> WordTable:
    """Reads the vectors of some words from a file in GloVe's form, compressed or not."""
    source, dimension = Path(path), 0
    found: dict[str, Floats] = {}
    for line in numbered_lines(source):
        text = line.text.rstrip()
        if not text:
            continue
        dimension = dimension or max(1, text.count(" "))
        # From the right, because words of some files hold blanks.
        word, *cells = text.rsplit(" ", dimension)
        if len(cells) == dimension and word not in keep:
            continue
        try:
            vector = np.array(cells, np.float32)
        except ValueError:
            vector = np.array([np.nan], np.float32)
        if len(cells) != dimension or not np.isfinite(vector).all():
            fault = f"not a word and {dimension} numbers"
            raise InputError(fault, "give vectors in GloVe's form", where=source, line=line.number)
        found.setdefault(word, vector)
    if not found:
        fault = "no vector of a word that is needed"
        raise InputError(fault, "give vectors of the collection's language", where=source)
    return WordTable(tuple(found), np.stack(list(found.values())))


def read_pieces(name: str) -> tuple[Any, Floats, str]:
    """The tokenizer of a local encoder, its input embeddings, shape (ids, dimension), and the hash of both files."""
    folder = packaged_folder() if name == PACKAGED else Path(name)
    tokenizer, files = folder / "tokenizer.json", weight_files(folder)
    if not tokenizer.is_file() or not files:
        raise InputError("no tokenizer.json and model.safetensors here", "give a local encoder", where=folder)
    weights = open_weights(files)
    table = next((found for end in _TABLES for found in sorted(weights.names) if found.endswith(end)), None)
    if table is None:
        raise InputError("no table of word pieces", "give an encoder of the BERT, T5 or GPT family", where=files[0])
    with needed_for("word pieces", "neural"):
        from tokenizers import Tokenizer
    try:
        opened = Tokenizer.from_str(tokenizer.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"not a tokenizer ({error})", "fetch the model again", where=tokenizer) from error
    # The models read texts longer than the encoder does.
    opened.no_padding()
    opened.no_truncation()
    return opened, weights.tensor(table), file_hash(tokenizer, *files)


_WORD: Final = re.compile(r"\w+")
#: Words that the vocabulary lacks share these many rows, so that equal ones still match.
_BUCKETS: Final = 2048
_FILE: Final = "vocabulary.json"
_TABLE: Final = "vocabulary.safetensors"
_CHUNK: Final = 4096
_SEED: Final = 20221110


@dataclass(frozen=True)
class Frequencies:
    """In how many of `documents` documents each word stands; for word pieces, by their number as text."""

    documents: int
    counts: Mapping[str, int]


class Vocabulary(ABC):
    """Vectors and idf of the numbers of words or word pieces; number 0 is padding, with zeros.

    The idf is max(0, ln(1 + (N − df + 0.5) / (df + 0.5))).
    """

    vectors: Floats
    idf: Floats

    @abstractmethod
    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of each text's words, in their order; none for a text without any."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Writes it to a folder that `open_vocabulary` reads."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash over all that decides about numbers, vectors and idf."""


class WordVocabulary(Vocabulary):
    """Lower-cased words with vectors from a file; no stemming, no stopwords removed.
     Words of the collection without a vector, and the rows that unknown words share (below those of the words, if they
    are there), get seeded random vectors of the length of the others.
    """

    def __init__(self, words: Sequence[str], vectors: Floats, frequencies: Frequencies) -> None:
        self._words = tuple(words)
        self._rows = {word: row for row, word in enumerate(words, start=1)}
        self._frequencies = frequencies
        absent = np.zeros((len(words) + _BUCKETS - len(vectors), vectors.shape[1]), np.float32)
        self.vectors = _filled(np.concatenate([vectors, absent]))
        counts = [frequencies.counts.get(word, 0) for word in words] + [0] * _BUCKETS
        self.idf = _idf(np.array([0, *counts]), frequencies.documents)

    @classmethod
    def from_file(cls, path: str | Path, frequencies: Frequencies) -> WordVocabulary:
        """The words of a collection, with the vectors that a file has for them."""
        table = read_word_vectors(path, frequencies.counts)
        rows = {word: row for row, word in enumerate(table.words)}
        words = sorted(frequencies.counts)
        vectors = np.zeros((len(words), table.vectors.shape[1]), np.float32)
        found = [(place, rows[word]) for place, word in enumerate(words) if word in rows]
        places, sources = np.array(found, np.int64).T
        vectors[places] = table.vectors[sources]
        return cls(words, vectors, frequencies)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._rows.get(word) or self._shared(word) for word in _words(text)] for text in texts]

    def save(self, folder: Path) -> None:
        counts = [self._frequencies.counts.get(word, 0) for word in self._words]
        content = {"kind": "words", "documents": self._frequencies.documents, "words": self._words, "counts": counts}
        _write(folder, content, {"vectors": self.vectors[1:]})

    @cached_property
    def fingerprint(self) -> str:
        return digest(["words", self._words, _hash(self.vectors), _hash(self.idf)])

    def _shared(self, word: str) -> int:
        return 1 + len(self._words) + zlib.crc32(word.encode("utf-8", "surrogatepass")) % _BUCKETS


class PieceVocabulary(Vocabulary):
    """The word pieces of a local encoder (a folder, or `packaged`) with its input embeddings.

    The mean of the table is taken away, because all its vectors share a direction that says nothing about words. The
    table is not saved with a ranker: the encoder's name is, and the hash of its files.
    """

    def __init__(self, encoder: str, frequencies: Frequencies) -> None:
        self._encoder = encoder if encoder == PACKAGED else str(Path(encoder).resolve())
        self._frequencies = frequencies
        self._tokenizer, table, self.sha256 = read_pieces(encoder)
        vectors = table - table.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.vectors = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors])
        counts = np.zeros(len(self.vectors), np.int64)
        for number, count in frequencies.counts.items():
            counts[int(number)] = count
        self.idf = _idf(counts, frequencies.documents)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of each text's word pieces, without special tokens."""
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
        return [[number + 1 for number in one.ids] for one in encoded]

    def save(self, folder: Path) -> None:
        """Writes the encoder's name, the hash of its files, and the frequencies."""
        counts = {number: self._frequencies.counts[number] for number in sorted(self._frequencies.counts, key=int)}
        content = {"kind": "pieces", "encoder": self._encoder, "sha256": self.sha256}
        _write(folder, {**content, "documents": self._frequencies.documents, "counts": counts}, {})

    @cached_property
    def fingerprint(self) -> str:
        return digest(["pieces", self.sha256, _hash(self.idf)])


def open_vocabulary(vectors: str | Path, texts: Iterable[str] = ()) -> Vocabulary:
    """Opens a vocabulary: a saved one, or a new one of a collection, counting in how many documents each word (or word
    piece) stands."""
    name, is_file = str(vectors), Path(vectors).is_file()
    if (Path(name) / _FILE).is_file():
        return _load(Path(name))
    pieces = None if is_file else PieceVocabulary(name, Frequencies(0, {}))
    counts: Counter[str] = Counter()
    documents, stream = 0, iter(texts)
    while block := list(islice(stream, _CHUNK)):
        documents += len(block)
        for words in map(_words, block) if pieces is None else pieces.ids(block):
            counts.update(set(map(str, words)))
    if not documents:
        raise OptionError("docs", "no document to count words in", "give documents")
    counted = Frequencies(documents, counts)
    return WordVocabulary.from_file(name, counted) if is_file else PieceVocabulary(name, counted)


def _load(folder: Path) -> Vocabulary:
    file = folder / _FILE
    try:
        content = json_file(file)
        kind, documents, counts = content["kind"], int(content["documents"]), content["counts"]
        if kind == "words":
            from safetensors.numpy import load_file

            words = content["words"]
            vectors = load_file(folder / _TABLE)["vectors"]
            return WordVocabulary(words, vectors, Frequencies(documents, dict(zip(words, counts, strict=True))))
        encoder, sha256 = content["encoder"], content["sha256"]
    except InputError:
        raise
    except Exception as error:  # the reader of tensors raises its own kinds
        fault = f"no vocabulary that can be read ({type(error).__name__})"
        raise InputError(fault, "train the ranker again", where=file) from error
    found = PieceVocabulary(encoder, Frequencies(documents, counts))
    if found.sha256 != sha256:
        raise InputError(f"the encoder {encoder} is not the one that it was trained with", "restore it", where=file)
    return found


def _write(folder: Path, content: Mapping[str, Any], tensors: Mapping[str, Floats]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if tensors:
        from safetensors.numpy import save

        with atomic_path(folder / _TABLE) as temporary:
            temporary.write_bytes(save({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}))
        content = {**content, "table": hash_file(folder / _TABLE)}
    write_text(folder / _FILE, json.dumps(content, ensure_ascii=True) + "\n")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _filled(vectors: Floats) -> Floats:
    """The vectors below a row of zeros, with seeded random ones in place of rows that hold zeros only."""
    empty = ~vectors.any(axis=1)
    known = np.linalg.norm(vectors[~empty], axis=1)
    length = float(known.mean()) if len(known) else 1.0
    drawn = np.random.default_rng(_SEED).standard_normal((int(empty.sum()), vectors.shape[1])).astype(np.float32)
    filled = vectors.copy()
    filled[empty] = drawn * (length / np.linalg.norm(drawn, axis=1, keepdims=True).clip(1e-9))
    return np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), filled])


def _idf(counts: NDArray[np.int64], documents: int) -> Floats:
    idf = np.maximum(0.0, np.log1p((documents - counts + 0.5) / (counts + 0.5)))
    idf[0] = 0.0
    return idf.astype(np.float32)


def _hash(values: Floats) -> str:
    return hashlib.sha256(f"{values.shape}".encode() + np.ascontiguousarray(values).tobytes()).hexdigest()
