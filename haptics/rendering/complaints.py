"""Error messages for devices that deliver no usable samples or do not follow their commands."""

from __future__ import annotations

import math
from typing import Any

from haptics.rendering.envelope import ASTRAY, FOLLOWING_ERROR, IMPLAUSIBLE, NOT_FINITE


def complaint(begun: Any, now: Any, max_following_error: float, duration: float) -> str:
    """Return the reason why the output of a device was the safe output for too long.

    Parameters
    ----------
    begun, now : trace row
        First and last of these ticks.
    max_following_error : float
        Limit of the following error [m].
    duration : float
        Maximum duration of the safe output [s].
    """
    first, status = int(begun["tick"]), int(now["status"])
    if status & ASTRAY:
        return _astray(first, begun)
    if status & FOLLOWING_ERROR:
        return _not_following(first, now, max_following_error)
    return (
        f"no usable sample since tick {first}, for {duration * 1e3:.0f} ms (the last sample, or the element's "
        f"output for it, {_told(status)}): check its connection and start again."
    )


def _astray(first: int, row: Any) -> str:
    """Describe an end effector that did not follow a motion, from the `row` of the tick `first`."""
    far, fast = math.hypot(*row["displacement"]), math.hypot(*row["velocity"])
    return (
        f"it did not follow its motion at tick {first}: the end effector was {1e3 * far:.0f} mm from where it should "
        f"be, at {fast:.2f} m/s. Let go of it, see that nothing is in its way, or choose slower motions."
    )


def _not_following(first: int, row: Any, limit: float) -> str:
    """Describe an arm that has not followed its reference since the tick `first`, from the last `row`."""
    (x, y), (ahead, beside) = row["position"], row["proxy"] - row["position"]
    return (
        f"it does not follow: since tick {first} its end effector, at ({x:.3f} m, {y:.3f} m), has been more than "
        f"{1e3 * limit:.3g} mm from its reference, now {1e3 * ahead:.1f} mm in x and {1e3 * beside:.1f} mm in y. "
        "Something holds or blocks it, or its motors are off or too weak. Keep clear of it, as it may move when it "
        "is freed; free it, see that its motors are on, and start again. A slow arm may need a larger "
        "max_following_error in the settings of its device."
    )


def _told(status: int) -> str:
    """Describe the fault of the sample of a tick."""
    if status & NOT_FINITE:
        return "was not a finite number"
    if status & IMPLAUSIBLE:
        return "showed an implausible jump in position, or a force beyond the range of its sensor"
    return "was too old"
