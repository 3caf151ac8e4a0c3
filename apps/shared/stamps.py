"""Time of a key event, from the window system's time stamp."""

from __future__ import annotations

import time

_LATEST = 0.5
"""Maximum plausible delay of a key event by drawing and processor load [s]."""


def instant_of(stamp: int) -> float:
    """Return the time of an input event on the monotonic clock [s].

    A local display stamps events with the same clock, in milliseconds modulo 2**32. The stamp then excludes the time
    for which the event waited while the window was drawn. If the stamp is implausible, the present time is returned.

    Parameters
    ----------
    stamp : int
        Time stamp of the window system [ms]; 0 if unknown.
    """
    now = time.monotonic()
    waited = 1e-3 * ((int(now * 1e3) - stamp) % 2**32)
    return now - waited if stamp and waited < _LATEST else now
