"""A model behind an OpenAI-compatible endpoint: requests that wait, try again, and never show a key."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import load_json
from truerank.network import (
    AddressError,
    HttpAnswer,
    HttpClient,
    LargeAnswerError,
    NetworkError,
    is_this_machine,
    retry_after,
)
from truerank.options import Flag, Options, Range

_LARGEST: Final = 4 << 20
_LARGEST_FAULT: Final = 1 << 16
#: Shorter ones are no secrets, such as EMPTY or 1: replaced in a model's answers, they would change its labels.
_SHORTEST_KEY: Final = 6
_AGAIN: Final = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_NEVER: Final = frozenset((401, 402, 403, 404, 405, 407))


class UnavailableError(Exception):
    """The endpoint did not answer, however often it was asked; nothing is known about the item."""


class RefusedError(Exception):
    """The endpoint will not answer this request, such as one that is too long for it."""


class Completion(NamedTuple):
    """A model's text, why it ended, and its tokens."""

    text: Any
    finish: str
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Patience(Options):
    """How often and how long an endpoint is asked.

    Attributes:
        retries: further attempts after a failed one.
        timeout: seconds for one attempt, from the connection to the end of the answer.
        per_minute: most requests a minute; 0 for no limit.
        first_wait: seconds before the second attempt; each further wait is twice as long.
        longest_wait: seconds; a server that asks for more is not waited for.
    """

    retries: Annotated[int, Range(at_least=0)] = 6
    timeout: Annotated[float, Range(above=0)] = 120.0
    per_minute: Annotated[float, Range(at_least=0)] = 0.0
    first_wait: Annotated[float, Range(at_least=0), Flag(hidden=True)] = 1.0
    longest_wait: Annotated[float, Range(at_least=0), Flag(hidden=True)] = 120.0


class Client:
    """Chat completions of one model; may be used by many threads at once.

    The endpoint is the base address, such as `http://127.0.0.1:8000/v1`, or the full one of chat completions. `key_env`
    is the environment variable that holds the key, empty for none; a temperature below 0 is left out. `requests` counts
    what was sent, and `retries` how many of them were repetitions.
    """

    def __init__(
        self, endpoint: str, model: str, *, key_env: str = "", temperature: float = 0.0, patience: Patience = Patience()
    ) -> None:
        if not model.strip():
            raise OptionError("model", "no model", "name the model that the endpoint has")
        parts = urlsplit(endpoint.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OptionError(
                "endpoint", f"'{endpoint}' is not an address", "write http://HOST:PORT/v1 or https://HOST/v1"
            )
        if parts.username or parts.password:
            raise OptionError("endpoint", "an address with a password in it", "name the key's variable with `key_env`")
        path = parts.path.rstrip("/")
        path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
        self.url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
        self.model = model
        self.temperature = temperature
        self.requests = self.retries = 0
        self._patience = patience
        self._key = _key(key_env, self.url)
        self._lock = threading.Lock()
        self._next = 0.0
        self._stopped = threading.Event()
        headers = {"Content-Type": "application/json", "User-Agent": "truerank"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        # It follows no redirects: they would carry the key and the texts to an address that nobody named.
        proxies = not is_this_machine(urlsplit(self.url).hostname or "")
        with needed_for("asking a model", "models"):
            secret = self._key if len(self._key) >= _SHORTEST_KEY else ""
            self._http = HttpClient(headers=headers, silence=patience.timeout, proxies=proxies, secret=secret)

    def complete(self, messages: list[dict[str, str]]) -> Completion:
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if self.temperature >= 0:
            body["temperature"] = self.temperature
        data = json.dumps(body, ensure_ascii=True).encode()
        fault = ""
        for attempt in range(self._patience.retries + 1):
            self._wait_for_turn()
            with self._lock:
                self.requests += 1
                self.retries += attempt > 0
            try:
                answer = self._send(data)
                if 200 <= answer.status < 300:
                    return _completion(answer.body, self.url)
                fault, wait = self._judged(answer), retry_after(answer.header("Retry-After"))
            except (NetworkError, _BrokenError) as error:
                fault, wait = str(error), None
            longest = self._patience.longest_wait
            wait = min(longest, self._patience.first_wait * 2**attempt) if wait is None else wait
            if wait > longest:
                raise UnavailableError(f"{fault}; it asks to wait {wait:.0f} s, longer than {longest:g} s")
            if attempt < self._patience.retries:
                # Nobody asks before the wait is over: a server that is overloaded is so for all threads.
                with self._lock:
                    self._next = max(self._next, time.monotonic() + wait)
        raise UnavailableError(fault)

    def start(self) -> None:
        """Takes up work, also after a stop."""
        self._stopped.clear()

    def stop(self) -> None:
        """Makes waiting threads give up, and those that wait for an answer."""
        self._stopped.set()
        self._http.stop()

    def _send(self, data: bytes) -> HttpAnswer:
        if self._stopped.is_set():
            raise UnavailableError("stopped")
        try:
            return self._http.ask("POST", self.url, seconds=self._patience.timeout, largest=_LARGEST, body=data)
        except LargeAnswerError as error:
            raise RefusedError("an answer of more than 4 MiB") from error
        except AddressError as error:
            raise InputError(str(error), "correct the address", where=self.url) from error

    def _judged(self, answer: HttpAnswer) -> str:
        """What a status means: text where trying again may help; otherwise raises."""
        fault = f"status {answer.status} {_told(answer.body)}".rstrip()
        if answer.status in _AGAIN:
            return fault
        if answer.status in _NEVER:
            raise InputError(f"the endpoint refuses ({fault})", "check address, model and key", where=self.url)
        if 300 <= answer.status < 400:
            raise InputError("the endpoint sends us elsewhere", "give the address it moved to", where=self.url)
        raise RefusedError(fault)

    def _wait_for_turn(self) -> None:
        """Keeps the rate; all threads share it."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            if self._patience.per_minute > 0:
                self._next = turn + 60 / self._patience.per_minute
        if self._stopped.wait(max(0.0, turn - now)):
            raise UnavailableError("stopped")


class _BrokenError(Exception):
    """An answer that is not a chat completion."""


def _key(variable: str, url: str) -> str:
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise OptionError("key_env", f"the environment variable {variable} is not set", "put the key there")
    if not key.isascii() or not key.isprintable():
        raise OptionError("key_env", f"{variable} holds no key", "a key is one line of visible characters")
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_this_machine(parts.hostname or ""):
        raise OptionError("endpoint", "a key would be sent in the clear", "use https, or leave `key_env` out")
    return key


def _completion(content: bytes, place: str) -> Completion:
    try:
        value = load_json(content, place)
        choice = value["choices"][0]
        text = choice["message"].get("content")
    except (InputError, LookupError, TypeError, AttributeError) as error:
        fault = f": {error.fault}" if isinstance(error, InputError) else ""
        raise _BrokenError(f"no chat completion in the answer{fault}") from error
    usage = value.get("usage")
    counts = [usage.get(f"{name}_tokens") if isinstance(usage, Mapping) else 0 for name in ("prompt", "completion")]
    read, written = (count if type(count) is int and count > 0 else 0 for count in counts)
    return Completion(text, str(choice.get("finish_reason") or ""), read, written)


def _told(body: bytes) -> str:
    """The message in an error's body, one line, cut short."""
    try:
        value = load_json(body[:_LARGEST_FAULT], "")
        clause = value["error"]["message"] if isinstance(value["error"], dict) else value["error"]
    except (InputError, LookupError, TypeError):
        return ""
    text = " ".join(str(clause).split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)[:200]
