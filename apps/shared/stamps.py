"""When a key went down, by the window system's stamp of the event."""

from __future__ import annotations

import time

_LATEST = 0.5
"""A window that draws and a machine that is busy see a key this much too late at most [s]."""


def instant_of(stamp: int) -> float:
    """Return when an input event happened, on the monotonic clock [s].

    A display on this machine stamps events by the same clock, in milliseconds of 32 bits: then the time for which the
    event waited while the window was drawn does not count. Other stamps are of no use, and it happened just now.

    Parameters
    ----------
    stamp : int
        What the window system says [ms]; 0 if nothing.
    """
    now = time.monotonic()
    waited = 1e-3 * ((int(now * 1e3) - stamp) % 2**32)
    return now - waited if stamp and waited < _LATEST else now
