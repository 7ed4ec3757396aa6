"""Seeded mutations of bytes, for runs without atheris and for the ordinary tests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["TOKENS", "mutated"]

#: What readers of texts, numbers and structures have failed on, here or elsewhere.
TOKENS: Final[tuple[bytes, ...]] = (
    b"\r", b"\n", b"\r\n", b"\t", b"\x00", b"\x0c", b"\x0b", b"\x1b[2J", b"\x7f", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf",
    b"\xc2\x85", b"\xe2\x80\xa8", b"\xc2\xa0", b"\xed\xa0\x80", b"\xf4\x8f\xbf\xbf", b"\\ud800", b"\\u0000", b"\\",
    b'"', b"'", b'""', b",", b";", b":", b"[", b"]", b"{", b"}", b"<", b">", b"</", b"<!--", b"<![CDATA[", b"&#0;",
    b"&#x110000;", b"&#99999999999;", b"&amp", b"<top>", b"</top>", b"<DOC>", b"</DOC>", b"<num>", b"[]", b"{}",
    b"null", b"true", b"NaN", b"nan", b"inf", b"-inf", b"Infinity", b"1e400", b"-1e400", b"1e-400", b"-0", b"0x10",
    b"1_0", b"+1", b"-1", b"2147483648", b"4294967296", b"9223372036854775808", b"-9223372036854775809", b"9" * 20,
    b"9" * 40, b"1" * 400, b"1" * 5000, b"\xd9\xa3", b"\xc2\xb2", b"0" * 50, b"." * 20, b"[" * 30, b"{" * 30,
    b"[" * 200,
    b'{"a":' * 150, b"- " * 120, b"a." * 120, b"((((", b"%s", b"%00", b"../", b"file:", b"*", b"?", b"#", b"=",
    b"&a ", b"*a",
    b"<<: *a", b"!!python/object:x", b"!!binary ", b"2024-13-45", b"0000-00-00", b"12:61:61", b"PAR1", b"\x1f\x8b\x08",
    b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00", b"\x50\x2a\x4d\x18\xff\xff\xff\xff", b"SQLite format 3\x00",
    b"=1+1", b"@a",
)  # fmt: skip


def mutated(seeds: Sequence[bytes], count: int, seed: int, longest: int = 1 << 14) -> Iterator[bytes]:
    """Inputs made of seeds by a few random changes each; the same arguments give the same inputs.

    Args:
        seeds: the inputs to begin from; the first byte of each is kept most of the time.
        count: how many inputs.
        seed: of all draws.
        longest: in bytes.
    """
    draw = random.Random(seed)
    for _ in range(count):
        data = bytearray(draw.choice(seeds))
        for _ in range(1 + min(int(draw.expovariate(0.5)), 12)):
            _change(data, seeds, draw)
        yield bytes(data[:longest])


def _change(data: bytearray, seeds: Sequence[bytes], draw: random.Random) -> None:
    start = 0 if draw.random() < 0.05 or len(data) < 2 else 1
    at = draw.randint(start, len(data))
    end = min(len(data), at + 1 + int(draw.expovariate(0.1)))
    match draw.randrange(8):
        case 0 if at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        case 1 if at < len(data):
            data[at] = draw.randrange(256)
        case 2:
            del data[at:end]
        case 3:
            data[at:at] = data[at:end] * draw.choice((1, 1, 2, 5, 40))
        case 4:
            other = draw.choice(seeds)
            begin = draw.randrange(len(other)) if other else 0
            data[at:end] = other[begin : begin + 1 + int(draw.expovariate(0.02))]
        case 5:
            del data[at:]
        case 6:
            data[at:end] = draw.choice(TOKENS)
        case _:
            data[at:at] = draw.choice(TOKENS)
