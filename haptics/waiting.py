"""Cancellable waits: a driver's ``open`` may take long, and whoever cancels it must not wait for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from haptics.errors import OpeningCancelled

_SLICE = 0.02
"""A cancel is noticed within this time [s]."""

_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("cancelled", default=None)
"""Tells whether the waits of this thread are cancelled; other threads have none."""


@contextlib.contextmanager
def cancelled_by(check: Callable[[], bool]) -> Iterator[None]:
    """Let `check` cancel the waits of this thread that are made with `pause`."""
    token = _cancelled.set(check)
    try:
        yield
    finally:
        _cancelled.reset(token)


def go_on() -> None:
    """Return, or raise where the waits of this thread are cancelled: once, so that what has begun can be undone.

    To be called before anything is energised.

    Raises
    ------
    OpeningCancelled
        If they are.
    """
    check = _cancelled.get()
    if check is not None and check():
        _cancelled.set(None)
        raise OpeningCancelled("the device was not opened: the opening was cancelled.")


def pause(duration: float) -> None:
    """Wait for `duration` [s], in ``open`` of a driver in place of `time.sleep`.

    Raises
    ------
    OpeningCancelled
        As soon as the opening is cancelled.
    """
    until = time.monotonic() + duration
    go_on()
    while (left := until - time.monotonic()) > 0.0:
        time.sleep(min(left, _SLICE))
        go_on()
