"""Interface of the benchmarks: progress, deferred Ctrl-C, result, and formatting of tables."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Self

from apps.front_ends.front_end import start_process
from haptics.errors import ConfigurationError

Progress = Callable[[float, str], None]
"""Callback with the completed share, from 0 to 1, and the current measurement."""


class CannotMeasure(ConfigurationError):
    """A requirement of a benchmark is missing on this machine.

    The message contains the remedy.
    """


def table(rows: Sequence[Sequence[object]]) -> str:
    """Format `rows` as text in columns: words aligned left, numbers right.

    The first row is the heading.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = [all(isinstance(row[i], str) for row in rows) for i in range(len(widths))]
    lines = []
    for row in cells:
        aligned = (cell.ljust(w) if left else cell.rjust(w) for cell, w, left in zip(row, widths, words, strict=True))
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def table_of(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Format `rows` as text in columns, which map the key of a value to its heading."""
    return table([list(columns.values()), *([row[key] for key in columns] for row in rows)])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    decimals = 2 - math.floor(math.log10(max(abs(value), 1e-9)))  # three digits, at most three decimals
    return f"{value:.{min(max(decimals, 0), 3)}f}"


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

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _ask(self, *_: object) -> None:
        repeated, self._asked = self._asked, True
        if self._at_once and not repeated:
            raise KeyboardInterrupt


@contextmanager
def child_process(
    target: Callable[..., None], *arguments: object, name: str, farewell: object = None
) -> Iterator[tuple[Connection[Any, Any], BaseProcess]]:
    """Run ``target(connection, *arguments)`` in a new process within the block; yield our connection and the process.

    At the end the process is killed, two seconds after the message `farewell` if there is one.
    """
    connection, process = start_process(target, arguments, name)
    try:
        yield connection, process
    finally:
        if farewell is not None:
            with suppress(OSError):  # the connection was closed, or the process has died
                connection.send(farewell)
            process.join(2.0)
        process.kill()
        process.join()
        connection.close()
