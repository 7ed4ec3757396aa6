"""A small annotation with difficult texts, and a real server for it."""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from truerank.judging.items import Annotator, Item, Text
from truerank.judging.samples import Proposer
from truerank.judging.schemes import Scheme, load_scheme
from truerank.judging.store import Store
from truerank.judging.web import Desk, Serving, open_desk

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</textarea><script>window.pwned = 2</script>",
    '<img src=x onerror="window.pwned = 3">',
    "\"'><svg onload=window.pwned=4>",
    "{{ 7 * 7 }} ${window.pwned = 5}",
    "evil \u202etxt.exe\u202c and \u200f\u05e9\u05dc\u05d5\u05dd\u200f",
)
PEOPLE = ("ann", "bob")


def pairs(count: int = 20, hostile: Sequence[str] = ()) -> list[Item]:
    """Pairs of a topic and a training query; hostile texts come first."""
    made = []
    for number in range(count):
        query = hostile[number] if number < len(hostile) else f"cost of airport security number {number}"
        made.append(
            Item(
                item_id=f"pair <{number}>",
                topic_id=str(301 + number),
                title=f"Airport Security {number}",
                description="What are new methods of securing airports?",
                narrative="A relevant document names a method, a device or a procedure.",
                variant="securing airports" if number % 2 else "",
                texts=(Text("query", query, id=f"q{number}"),),
                dataset="robust04",
                score=0.95,
            )
        )
    return made


def make_store(
    path: Path, items: Sequence[Item] | None = None, scheme: str | Scheme = "leakage", people: Sequence[str] = PEOPLE
) -> Store:
    """A store in which everybody judges everything, with an adjudicator and a model."""
    items = pairs() if items is None else items
    ids = [item.item_id for item in items]
    return Store.create(
        path,
        load_scheme(scheme) if isinstance(scheme, str) else scheme,
        items,
        dict.fromkeys(people, ids),
        annotators=[Annotator("judy", "adjudicator"), Annotator("tiny-model", "model", "tiny-model at 0")],
    )


@contextlib.contextmanager
def served(path: Path, proposer: Proposer | None = None, batch: int = 1, **options: Any) -> Iterator[Desk]:
    """The store behind a real server on a free port, in this process; a name is enough where no option forbids it."""
    usual = {"port": 0, "no_tokens": not {"allow_hosts", "new_tokens"} & options.keys()}
    desk = open_desk(path, Serving(**{**usual, **options}), proposer=proposer, batch=batch)
    thread = threading.Thread(target=desk.run)
    thread.start()
    try:
        yield desk
    finally:
        desk.stop()
        thread.join(timeout=20)
        assert not thread.is_alive()


class Browser:
    """As much of a browser as forms need: cookies, and the fields of the last page."""

    def __init__(self, address: str) -> None:
        self.host = re.sub(r"^https?://|/$", "", address)
        self.cookies: dict[str, str] = {}
        self.status, self.text, self.headers, self.at = 0, "", {}, ""  # type: ignore[var-annotated]
        self._connection = http.client.HTTPConnection(self.host, timeout=30)

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, follow: bool = True, **headers: str
    ) -> Browser:
        """Sends one request, and follows where it leads."""
        sent = {"Host": self.host, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if method == "POST":
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, path, body=body, headers=sent)
        answer = self._connection.getresponse()
        self.text, self.status, self.at = answer.read().decode(), answer.status, path
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0].strip('"')
        if follow and self.status == 303:
            return self.ask("GET", self.headers["location"])
        return self

    def get(self, path: str, **headers: str) -> Browser:
        """Asks for a page."""
        return self.ask("GET", path, **headers)

    def fields(self, form: str = "label") -> dict[str, str]:
        """The hidden fields of a form of the last page."""
        found = re.search(rf'<form id="{form}".*?</form>', self.text, re.S) or re.search(
            r"<form.*?</form>", self.text, re.S
        )
        assert found is not None, self.text
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', found[0]))

    def post(self, path: str, fields: object, **options: object) -> Browser:
        """Sends a form."""
        return self.ask("POST", path, urlencode(fields, doseq=True), **options)  # type: ignore[arg-type]

    def enter(self, name: str, token: str = "") -> Browser:
        """Says who one is."""
        self.get("/enter")
        return self.post("/enter", {**self.fields(), "name": name, "token": token})

    def label(self, *labels: str, **more: str) -> Browser:
        """Labels the item of the last page."""
        return self.post(self.at.partition("?")[0], {**self.fields(), "label": labels, **more})

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()
