"""Many annotators at once, and a judging server that is killed in the middle: is every acknowledged label kept, once?

Starts the server of `truerank judge serve` on loopback and lets annotators judge over HTTP as their browsers do: load
the item, send the form, follow to the next item. Requests that met a dead server are sent again with the same token.
"""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from truerank.judging import Item, Store, Text, load_scheme

LABELS = ("Title-Identical", "Title-Specialization", "Title-Reformulation", "Different Topic")
#: What `truerank judge serve` does, without loading the other commands.
SERVE = """
import sys
from truerank.judging.web import Serving, open_desk
desk = open_desk(sys.argv[1], Serving(port=int(sys.argv[2]), no_tokens=True))
print(desk.addresses[0], flush=True)
desk.run()
"""
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


class Acknowledged(NamedTuple):
    """A label that the server said it has kept."""

    annotator: str
    place: int
    label: str
    token: str


class Server:
    """The server of `truerank judge serve`, which can be killed and started again at the same port."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Starts it and waits until it listens."""
        command = [sys.executable, "-c", SERVE, str(self.store), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        self.port = int(line.rsplit(":", 1)[1].strip().strip("/"))

    def kill(self) -> None:
        """Ends it without warning."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Ends it as Ctrl-C does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


class Client:
    """One annotator's browser, which sends a request again until it is answered."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.cookie, self.connection = "", http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self.kept: list[Acknowledged] = []
        self.repeated = 0

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str]:
        """One request: status, where it leads, and the page."""
        headers = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}
        body = None if fields is None else urlencode(fields)
        failed = False
        while True:
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                text = answer.read().decode()
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
                self.repeated, failed = self.repeated + (not failed), True
                time.sleep(0.1)
                continue
            if answer.getheader("set-cookie"):
                self.cookie = str(answer.getheader("set-cookie")).partition(";")[0]
            return answer.status, answer.getheader("location", ""), text

    def work(self, number: int) -> None:
        """Enters, and judges until nothing is left."""
        _, _, text = self.ask("GET", "/enter")
        self.ask("POST", "/enter", dict(HIDDEN.findall(text)) | {"name": self.name})
        _, path, _ = self.ask("GET", "/judge")
        while path.startswith("/judge/"):
            _, _, text = self.ask("GET", path)
            place = int(path.partition("?")[0].rsplit("/", 1)[1])
            form = text[text.index('<form id="label"') :]
            fields = dict(HIDDEN.findall(form[: form.index("</form>")]))
            label = LABELS[(number + place) % len(LABELS)]
            status, path, text = self.ask("POST", f"/judge/{place}", fields | {"label": label, "comment": f"{place}"})
            if status != 303:
                raise RuntimeError(f"{self.name}, item {place}: status {status}: {text[-500:]}")
            self.kept.append(Acknowledged(self.name, place, label, fields["token"]))


def make_store(path: Path, names: list[str], each: int) -> None:
    """A store in which every annotator judges items of their own, and the first tenth is everybody's."""
    shared = each // 10
    items, work = [], {}
    for number in range(shared + len(names) * (each - shared)):
        text = f"what is known about subject number {number}"
        narrative = "A relevant document tells something about the subject. " * 4
        items.append(
            Item(
                f"item-{number}",
                str(number % 250),
                text.title(),
                text,
                narrative,
                texts=(Text("query", text, f"q{number}"),),
            )
        )
    for at, name in enumerate(names):
        first = shared + at * (each - shared)
        own = [*range(shared), *range(first, first + each - shared)]
        work[name] = [items[number].item_id for number in own]
    Store.create(path, load_scheme("leakage"), items, work).close()


def lost_and_doubled(path: Path, clients: list[Client]) -> tuple[int, int]:
    """How many acknowledged labels the store lacks, and how many events it has too many."""
    with Store.open(path) as store:
        work = {client.name: store.assigned(client.name) for client in clients}
        events = Counter((event.annotator, event.item_id, event.labels, event.token) for event in store.events())
        standing = len(store.standing())
    kept = {
        (one.annotator, work[one.annotator][one.place - 1], (one.label,), one.token) for c in clients for one in c.kept
    }
    lost = sum(one not in events for one in kept)
    doubled = sum(events.values()) - len({(name, item) for name, item, _, _ in events})
    return lost, doubled + abs(standing - len(kept))


class Outcome(NamedTuple):
    """Labels that were acknowledged, lost and doubled, requests sent again, and the exit code of the server."""

    acknowledged: int
    lost: int
    doubled: int
    sent_again: int
    ended_with: int


def run(annotators: int, labels: int, folder: Path) -> Outcome:
    """Judges; the server is killed when a third of the labels are in, and started again."""
    names = [f"annotator {number}" for number in range(annotators)]
    path = folder / "load.judged"
    make_store(path, names, labels // annotators)
    server = Server(path)
    clients = [Client(server, name) for name in names]
    threads = [threading.Thread(target=client.work, args=(at,), daemon=True) for at, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    while sum(len(client.kept) for client in clients) < labels / 3:
        time.sleep(0.005)
    server.kill()
    server.start()
    for thread in threads:
        thread.join()
    ended = server.end()
    lost, doubled = lost_and_doubled(path, clients)
    repeated = sum(client.repeated for client in clients)
    return Outcome(sum(len(client.kept) for client in clients), lost, doubled, repeated, ended)
