"""Tracebacks that pytest can print: it ends the whole run where an error came up at an instruction without a line.

A time limit that is over in such an instruction does that: seldom, and only where the machine is slow.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error, and what it was raised from or meanwhile."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def give_lines(error: BaseException) -> bool:
    """Name the first line of its function where an entry of a traceback has none; tell whether there was one."""
    found = False
    for one in chain(error):
        entries: list[TracebackType] = []
        entry = one.__traceback__
        while entry is not None:
            entries.append(entry)
            entry = entry.tb_next
        if all(entry.tb_lineno is not None for entry in entries):
            continue
        found, rest = True, None
        for entry in reversed(entries):
            line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
            rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, line)
        one.__traceback__ = rest
    return found
