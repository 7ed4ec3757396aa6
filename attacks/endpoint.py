"""A hostile model endpoint: every answer is drawn from a seed, and the client must end in time with one line.

    python attacks/endpoint.py [--seconds 20] [--seed 1] [--case N] [--most-seconds 3]

Asks for chat completions, with a timeout of 0.3 seconds and without repetitions. Ends with 1, and prints the case, if
an attempt raises anything but one printable line, takes more than three seconds, or brings the process above
500 MB of memory. `--case N` runs one case again.
"""

from __future__ import annotations

import json
import random
import sys

from campaigns import campaign
from hostile import hostile_server, respond, values
from truerank.errors import InputError
from truerank.judging.endpoints import Client, Patience, RefusedError, UnavailableError
from truerank.judging.items import Item, Text
from truerank.judging.models import read_answer
from truerank.judging.schemes import load_scheme

HONEST = json.dumps({
    "choices": [{"index": 0, "message": {"content": '{"labels": ["leak"], "comment": "a"}'}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 71},
}).encode()  # fmt: skip
ITEM = Item("i", "1", "a topic", texts=(Text("query", "a query"),))


def tried(seed: int, case: int, told: list[str]) -> str:
    """One case: notes what the server did, and returns what became of it. Raises what should not be raised."""
    random_ = random.Random(f"{seed} {case}")

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
    return outcome


if __name__ == "__main__":
    sys.exit(campaign(__doc__, tried, most_seconds=3))
