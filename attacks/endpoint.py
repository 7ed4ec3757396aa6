"""A hostile model endpoint: every answer is drawn from a seed, and the client must end in time with one line.

    python attacks/endpoint.py [--seconds 20] [--seed 1] [--case N]

Asks for chat completions, with a timeout of 0.3 seconds and without repetitions. Ends with 1, and prints the case, if
an attempt raises anything but one printable line, takes more than three seconds, or brings the process above
500 MB of memory. `--case N` runs one case again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter

from hostile import hostile_server, respond, values
from truerank.errors import InputError
from truerank.judging.endpoints import Client, Patience, RefusedError, UnavailableError
from truerank.judging.items import Item, Text
from truerank.judging.prompts import read_answer
from truerank.judging.schemes import load_scheme

HONEST = json.dumps({
    "choices": [{"index": 0, "message": {"content": '{"labels": ["leak"], "comment": "a"}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 71},
}).encode()  # fmt: skip
ITEM = Item("i", "1", "a topic", texts=(Text("query", "a query"),))
MOST_SECONDS, MOST_MEGABYTES = 3, 500


def tried(seed: int, case: int) -> tuple[str, str]:
    """One case: what the server did, and what became of it. Raises what should not be raised."""
    random_, told = random.Random(f"{seed} {case}"), []

    def answer(connection, _):  # type: ignore[no-untyped-def]
        name, body = values(random_, HONEST)
        told.append(name)
        told.append(respond(connection, random_, body))

    with hostile_server(answer) as address:
        client = Client(address, "tiny", patience=Patience(retries=0, timeout=0.3, longest_wait=0.1))
        try:
            completion = client.complete([{"role": "user", "content": "a"}])
            read_answer(completion.text, load_scheme("leakage"), ITEM)
            outcome = "answered"
        except (UnavailableError, RefusedError, InputError) as error:
            outcome, line = type(error).__name__, str(error)
            if not line.isprintable() or len(line) > 1000:
                raise ValueError(f"no printable line: {line[:2000]!r}") from error
        finally:
            client.stop()
    return " ".join(told), outcome


def main() -> int:
    """Runs cases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    end, case, slowest = time.monotonic() + options.seconds, options.case or 0, 0.0
    while time.monotonic() < end:
        begun, told = time.monotonic(), ""
        try:
            told, outcome = tried(options.seed, case)
            seconds = time.monotonic() - begun
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            if seconds > MOST_SECONDS or memory > MOST_MEGABYTES:
                raise ValueError(f"{seconds:.1f} s, {memory} MB")
        except Exception as error:
            print(f"broken: --seed {options.seed} --case {case} ({told}): {type(error).__name__}: {str(error)[:2000]}")
            return 1
        counts[outcome] += 1
        slowest = max(slowest, seconds)
        case += 1
        if options.case is not None:
            break
    print(json.dumps({"cases": sum(counts.values()), **counts, "slowest_s": round(slowest, 2), "memory_mb": memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
