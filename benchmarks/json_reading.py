"""What reading one large JSON object of columns costs: the cursors of truerank, ijson, and `json.loads`.

    nice python benchmarks/json_reading.py [--queries 40000] [--repeats 3]

The file has the layout of MS MARCO QnA: six columns, each keyed by row. Every reader gives the first two, and then all
columns, row by row; the rows are compared. ijson is used where it is installed (`pip install ijson`); it reads the
whole file once for each column, has no line numbers, and stops at bytes that are not UTF-8.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truerank.sources.rows import member_places, parsed_at

NAMES = ("passages", "query", "answers", "query_id", "query_type", "wellFormedAnswers")


def write(path: Path, queries: int) -> None:
    """One object with the columns passages and query, about 5 kB a row."""
    text = "the wings of a bird lift it while the tail keeps it level " * 8
    row = [{"is_selected": int(at == 3), "passage_text": f"{at} {text}", "url": f"http://x/{at}"} for at in range(10)]
    columns = {
        "passages": {str(at): row for at in range(queries)},
        "query": {str(at): f"how do birds fly {at}" for at in range(queries)},
        "answers": {str(at): ["With wings."] for at in range(queries)},
        "query_id": {str(at): at for at in range(queries)},
        "query_type": {str(at): "DESCRIPTION" for at in range(queries)},
        "wellFormedAnswers": {str(at): [] for at in range(queries)},
    }
    path.write_text(json.dumps(columns), encoding="utf-8")


def by_cursors(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The columns side by side, each with a cursor of its own."""
    places = member_places(path)
    for cells in zip(*(parsed_at(path, places[name], strict=True) for name in names), strict=True):
        yield tuple(cell.value for cell in cells)


def by_ijson(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The columns side by side, each in a pass over the whole file."""
    import ijson

    with ExitStack() as stack:
        columns = [ijson.kvitems(stack.enter_context(path.open("rb")), name, use_float=True) for name in names]
        for cells in zip(*columns, strict=True):
            yield tuple(value for _, value in cells)


def at_once(path: Path, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The whole file in memory."""
    columns = json.loads(path.read_bytes())
    for key in columns[names[0]]:
        yield tuple(columns[name][key] for name in names)


Reader = Callable[[Path, Sequence[str]], Iterator[tuple[Any, ...]]]


def seconds(read: Reader, path: Path, names: Sequence[str], repeats: int) -> tuple[float, int]:
    """The least processor time of the repeats, and a checksum of the rows."""
    taken = []
    total = 0
    for _ in range(repeats):
        start, total = time.process_time(), 0
        for cells in read(path, names):
            total = hash((total, str(cells[-1]), len(cells[0])))
        taken.append(time.process_time() - start)
    return min(taken), total


def main() -> None:
    """Prints one line for each reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    readers: dict[str, Reader] = {"cursors of truerank": by_cursors, "json.loads, all in memory": at_once}
    if importlib.util.find_spec("ijson") is not None:
        import ijson

        readers[f"ijson {ijson.__version__}, {ijson.backend}"] = by_ijson
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "columns.json"
        write(path, given.queries)
        size = path.stat().st_size / 1e6
        print(f"{given.queries:,} rows, {size:.0f} MB")
        for names in (NAMES[:2], NAMES):
            sums = set()
            for name, read in readers.items():
                taken, total = seconds(read, path, names, given.repeats)
                sums.add(total)
                print(f"{taken:7.2f} s  {size / taken:6.0f} MB/s  {len(names)} columns  {name}")
            if len(sums) > 1:
                raise SystemExit("the readers differ")


if __name__ == "__main__":
    main()
