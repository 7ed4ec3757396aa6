"""Reading ahead: what is worked on next is read by a thread meanwhile."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable
from contextvars import copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")
_END: Final = object()


def read_ahead(items: Iterable[T], depth: int = 2) -> Generator[T]:
    """The same items, the next `depth` of them read by a thread while the current one is worked on."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=depth)
    stopped = threading.Event()

    def offer(item: Any) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return True
        return False

    def read() -> None:
        try:
            for item in items:
                if not offer((item, None)):
                    return
        except BaseException as error:  # handed on to the reader's side
            offer((None, error))
            return
        offer(_END)

    thread = threading.Thread(target=copy_context().run, args=(read,), name="read-ahead", daemon=True)
    thread.start()
    try:
        while (entry := ready.get()) is not _END:
            item, error = entry
            if error is not None:
                raise error
            yield item
    finally:
        stopped.set()
        thread.join()
