"""Tar archives with hostile members: names that lead outside, links, devices, bombs, archives in archives.

    python attacks/tars.py [--seconds 20] [--seed 1] [--case N] [--most-seconds 10]

Each case packs members drawn from a seed, sometimes changes bytes of the archive, and reads its documents in this
process, which may write no file above 64 MiB. Ends with 1, and prints the case, if that raises anything but an error in
one printable line, writes outside of its temporary folder or leaves a file in it, takes more than ten seconds, or
brings the process above 500 MB of memory.
"""

from __future__ import annotations

import gzip
import io
import random
import resource
import signal
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from campaigns import campaign
from hostile import mutated
from truerank.errors import InputError
from truerank.sources import open_documents

_NAMES: Final = (
    "a.txt", "b.html", "c.jsonl", "d.tsv", "e.jsonl.gz", "../up.jsonl", "../../../../up.txt", "/tmp/absolute.jsonl",
    "/etc/passwd", "..", ".", "", "a/../../b.jsonl", "x" * 5000 + ".jsonl", "\x1b[2J.jsonl", "\udcff.jsonl",
    "a\nb.jsonl", "=cmd|.jsonl", ".hidden.jsonl", "CON.jsonl", "a/" * 900 + "b.jsonl", "c.parquet", "f.tar", "g.tar.gz",
    "-rf.jsonl",
)  # fmt: skip
_ROWS: Final = b'{"_id": "1", "text": "a text"}\n{"_id": "2", "text": "another"}\n'
_KINDS: Final = (
    tarfile.REGTYPE, tarfile.REGTYPE, tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
    tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE,
)  # fmt: skip
_MOST: Final = 64 << 20


def tried(seed: int, case: int, told: list[str]) -> str:
    """One case: notes what was packed, and returns what became of it. Raises what should not be raised."""
    draw = random.Random(f"{seed} {case}")
    with tempfile.TemporaryDirectory(prefix="attack-") as name:
        folder, held = Path(name), Path(name) / "held"
        held.mkdir()
        tempfile.tempdir = str(held)
        content = _packed(draw, told)
        if draw.random() < 0.3:
            told.append("mutated")
            content = mutated(draw, content)
        if draw.random() < 0.3:
            told.append("gzip")
            content = gzip.compress(content, 1, mtime=0)
        file = folder / ("x.tar.gz" if content[:2] == b"\x1f\x8b" else "x.tar")
        file.write_bytes(content)
        outcome = _read(file)
        tempfile.tempdir = None
        strange = [*held.iterdir(), *(path for path in folder.iterdir() if path not in (file, held))]
        if strange or Path("/tmp/absolute.jsonl").exists():
            raise ValueError(f"left {strange}")
    return outcome


def _read(file: Path) -> str:
    try:
        return f"{min(3, sum(1 for _ in open_documents(str(file))))} documents"
    except InputError as error:
        line = str(error)
        if "\n" in line.strip():
            raise ValueError(f"no printable line: {line[:2000]!r}") from error
        return "refused"
    except OSError as error:
        if error.filename is None:
            raise ValueError(f"no place: {error!r}") from error
        return "no room"


def _packed(draw: random.Random, told: list[str], depth: int = 0) -> bytes:
    """An archive."""
    target = io.BytesIO()
    form = draw.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    with tarfile.open(fileobj=target, mode="w", format=form, errors="surrogateescape") as archive:
        for _ in range(draw.randrange(1, 5)):
            member = tarfile.TarInfo(draw.choice(_NAMES))
            member.type = draw.choice(_KINDS)
            body = draw.choice(
                (_ROWS, b"", b"a text", b"<html><p>x</html>", b"PAR1", b"\0" * 700, gzip.compress(_ROWS))
            )
            told.append(f"{member.name[:20]!r} {member.type!r}")
            if member.name.startswith(("f.", "g.")) and depth < 40:
                body = _packed(draw, told, depth + 1)
                body = gzip.compress(body, 1, mtime=0) if member.name.endswith("gz") else body
            if draw.random() < 0.05:
                told.append("bomb")
                body = bytes(_MOST // 8) if draw.random() < 0.5 else gzip.compress(bytes(2 * _MOST), 1, mtime=0)
            if member.islnk() or member.issym():
                member.linkname = draw.choice(("/etc/passwd", "../x", member.name, "a.txt"))
            if draw.random() < 0.1:
                told.append("pax")
                member.pax_headers = {draw.choice(("size", "path", "GNU.sparse.realsize", "hdrcharset")): draw.choice(
                    ("9" * 30, "-1", "nan", "../x", str(1 << 40)))}  # fmt: skip
            member.size = len(body) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(body) if member.isreg() else None)
        if draw.random() < 0.1:
            told.append("sparse")
            target.write(_sparse(1 << 40))
    return target.getvalue()


def _sparse(size: int) -> bytes:
    """A member of the old GNU kind that claims to be so large, and holds 512 bytes."""
    member = tarfile.TarInfo("sparse.jsonl")
    member.size = 512
    head = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    head[156:157] = tarfile.GNUTYPE_SPARSE
    head[386:410] = b"%011o\0%011o\0" % (0, 512)
    head[483:495] = b"\x80" + size.to_bytes(11, "big")
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 8 * 32 + sum(head[156:]))
    return bytes(head) + _ROWS.ljust(512, b"\n") + bytes(1024)


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST, resource.RLIM_INFINITY))
    sys.exit(campaign(__doc__, tried, most_seconds=10))
