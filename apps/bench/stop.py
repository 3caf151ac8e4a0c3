"""Ctrl-C while other processes run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Remembers that somebody wants the end: Ctrl-C, a request to terminate, a closed terminal.

    As a context it listens. Whoever waits inside it calls `check` in between, so that sessions and processes are never
    torn apart in the middle.
    """

    def __init__(self) -> None:
        self._asked = False
        self._at_once = False
        self._previous: dict[signal.Signals, Any] = {}

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if the end was asked for."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let it raise in the middle of what is done inside, which must be fit for that."""
        self.check()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._ask) for number in _NUMBERS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _ask(self, *_: object) -> None:
        repeated, self._asked = self._asked, True
        if self._at_once and not repeated:
            raise KeyboardInterrupt
