"""Deferred handling of Ctrl-C while other processes run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Records a request to stop: SIGINT, SIGTERM or SIGHUP.

    As a context it handles these signals. Code inside polls `check`, so that sessions and processes are never
    interrupted at an arbitrary point.
    """

    def __init__(self) -> None:
        self._asked = False
        self._at_once = False
        self._previous: dict[signal.Signals, Any] = {}

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a stop was requested."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise immediately on a signal inside this context, for code that can be interrupted anywhere."""
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
