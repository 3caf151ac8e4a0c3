"""What a person can choose about the velocity estimate, and how late it comes."""

from __future__ import annotations

from dataclasses import dataclass

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented

LONGEST_WINDOW = 64
"""Largest number of periods a difference can be taken over."""

LONGEST_FIT = 32
"""Longest window of the adaptive estimators [samples back from the latest one]."""

_SETTLING = 1000
"""Samples after which the gain of a Kalman filter no longer changes."""

ESTIMATORS = ("difference", "end-fit", "best-fit", "kalman", "level-crossing", "tracker")
"""Names of the estimators; the place in this tuple is the number the kernels know them by."""


@documented
@dataclass(frozen=True)
class VelocitySettings:
    """How a device that measures positions makes velocities of them.

    Raises
    ------
    ConfigurationError
        On a wrong setting.
    """

    velocity_estimator: str = choice("tracker", ESTIMATORS, doc="how velocities are made of positions")
    velocity_window: int = bounded(
        1, minimum=1, maximum=LONGEST_WINDOW, doc="periods the velocity is averaged over (difference)"
    )
    velocity_memory: float = bounded(
        1.25e-3, minimum=1e-5, maximum=1.0, unit="s", doc="how long the estimate remembers at rest (tracker, kalman)"
    )
    velocity_acceleration: float = bounded(
        15.0, minimum=0.1, maximum=1000.0, unit="m/s^2", doc="how hard the hand brakes or starts (tracker, kalman)"
    )
    velocity_rest_gain: float = bounded(
        0.3, minimum=0.05, maximum=1.0, doc="share of a motion of about a count at rest that is passed on (tracker)"
    )

    def __post_init__(self) -> None:
        check(self)
        check_velocity(self, "")


def check_velocity(settings: VelocitySettings, where: str) -> None:
    """Check what the bounds of the single settings do not say.

    Parameters
    ----------
    settings : VelocitySettings
        Any settings that have those of the estimator.
    where : str
        What a person writes before the name of a setting: ``device.``, or nothing.

    Raises
    ------
    ConfigurationError
        If the window belongs to another estimator than the chosen one.
    """
    window, name = settings.velocity_window, settings.velocity_estimator
    if window > 1 and name != "difference":
        raise ConfigurationError(
            f"{where}velocity_window = {window}: only {where}velocity_estimator = 'difference' averages over a window; "
            f"with {name!r} it must be 1."
        )


def velocity_lag(settings: VelocitySettings, resolution: float, period: float) -> float:
    """Return how much later than a backward difference the velocity of a handle at rest comes [s].

    That is what a coupling pays for with stability while it sticks. Adaptive windows are longest at rest. The tracker
    is not late; of level crossings nothing is known until one comes.

    Parameters
    ----------
    settings : VelocitySettings
        Which estimator, and its numbers.
    resolution, period : float
        Of the encoder [m], and between two samples [s].
    """
    name = settings.velocity_estimator
    if name == "difference":
        return 0.5 * (settings.velocity_window - 1) * period
    if name in {"end-fit", "best-fit"} and resolution > 0.0:
        return 0.5 * (LONGEST_FIT - 1) * period
    if name == "kalman":
        return max(_kalman_lag(settings.velocity_acceleration**2 * settings.velocity_memory, resolution, period), 0.0)
    return 0.0


def _kalman_lag(S: float, q: float, T: float) -> float:
    """Return the lag behind the backward difference of a settled Kalman filter with acceleration intensity S.

    With settled gains g (position) and h/T (velocity) the velocities add up to the estimated position less
    ``(g/h - 1) T v``.
    """
    R = q * q / 12.0
    a, b, c = R, 0.0, 1.0  # the covariance: position, mixed, velocity
    for _ in range(_SETTLING):
        a, b, c = a + 2.0 * T * b + T * T * c + S * T**3 / 3.0, b + T * c + S * T * T / 2.0, c + S * T
        gain, velocity_gain = a / (a + R), b / (a + R)
        a, b, c = (1.0 - gain) * a, (1.0 - gain) * b, c - velocity_gain * b
    return gain / velocity_gain - T
