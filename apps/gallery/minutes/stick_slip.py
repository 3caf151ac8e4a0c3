"""Stick-slip of a handle that is pulled slowly through a soft grip, with a predictable frequency.

Friction falls with increasing speed when sliding begins (Stribeck). Steady sliding is unstable where this fall is
steeper than the damping of the grip. `apps.gallery.minutes.stick_slip` predicts the limit and the frequency
without the elements.

The encoder has a fine resolution (1 um). The velocity noise of a coarser encoder blurs the falling branch, and with
10 um the frequency is about 10 % higher.
"""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived, offline_rows, write_path
from apps.reproduce.style import BLUE, INK, ORANGE, dress
from apps.settings.config import complete

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

# --- prediction without the elements ------------------------------------------------------------------------------


MASS, GRIP, SPEED = 0.2, 400.0, 0.02
"""Mass [kg] that is pulled, stiffness of the grip [N/m], and speed of the pull [m/s]."""

KINETIC, STATIC, STRIBECK = 2.0, 3.0, 0.03
"""Kinetic force [N], static force [N] and Stribeck velocity [m/s] of the law."""

STIFFNESS, DAMPING = 2000.0, 40.0
"""Stiffness [N/m] and damping [N s/m] of the contact."""


def level(speed: float) -> float:
    """Return the friction at a sliding `speed` >= 0 [N]."""
    return KINETIC + (STATIC - KINETIC) * math.exp(-speed / STRIBECK)


def slope(speed: float) -> float:
    """Return the derivative of the friction level by speed [N s/m], which is negative."""
    return -(STATIC - KINETIC) / STRIBECK * math.exp(-speed / STRIBECK)


def critical_damping(late: float) -> float:
    """Return the grip damping below which steady sliding at the pulling speed is unstable [N s/m].

    At the stability limit the mass oscillates as ``exp(i w t)`` under the impedance of the contact, which is the slope
    F' of the law in series with spring and damper: ``1/Z = 1/F' + i w / (K + i w B)``, delayed by `late` [s]. The
    imaginary part of ``i w Z exp(-i w late) + k - m w^2 + i w b = 0`` gives b, the real part w. With a stiff contact
    ``b = -F'``.
    """

    def impedance(w: float) -> complex:
        contact = 1j * w / (STIFFNESS + 1j * w * DAMPING)
        return cmath.exp(-1j * w * late) / (1.0 / slope(SPEED) + contact)

    low, high = 1.0, 1e3
    for _ in range(60):
        middle = 0.5 * (low + high)
        stiffer = GRIP - MASS * middle**2 - middle * impedance(middle).imag > 0.0
        low, high = (middle, high) if stiffer else (low, middle)
    return -impedance(low).real


def period(grip_damping: float, duration: float, step: float = 1e-5) -> float:
    """Return the mean time between slips during `duration` [s], without the first two; nan without slips.

    The mass is initially at rest with relaxed springs.

    Parameters
    ----------
    grip_damping : float
        Damping of the grip [N s/m].
    duration : float
        Simulated time [s].
    step : float
        Step of the integration [s].

    Returns
    -------
    float
        Period of the stick-slip motion [s].
    """
    place = velocity = stretch = sliding = 0.0
    begins: list[float] = []
    sticks = True
    for number in range(round(duration / step)):
        push = STIFFNESS * stretch + DAMPING * velocity  # contact force if it sticks
        if abs(push) <= STATIC:
            force, sliding, stuck = push, 0.0, True
        else:
            size = _sliding(abs(push), abs(sliding))
            sliding, stuck = math.copysign(size, push), False
            force = math.copysign(level(size), push)
        if sticks and not stuck and (not begins or number * step - begins[-1] > 0.02):
            begins.append(number * step)
        sticks = stuck
        stretch += step * (velocity - sliding)
        ahead = SPEED * number * step - place
        pull = GRIP * ahead + grip_damping * (SPEED - velocity)
        velocity += step * (pull - force) / MASS
        place += step * velocity
    return float(np.mean(np.diff(begins[2:]))) if len(begins) > 3 else math.nan


def _sliding(push: float, guess: float) -> float:
    """Return the speed s at which ``push - B s`` is the level of the law [m/s], by Newton's method."""
    speed = guess
    for _ in range(30):
        steepness = DAMPING + slope(speed)
        better = max(speed - (DAMPING * speed + level(speed) - push) / steepness, 0.0)
        if abs(better - speed) < 1e-12:
            return better
        speed = better
    return speed


# --- demonstration ------------------------------------------------------------------------------------------------

TITLE = "stick-slip: its frequency is predicted, and a firm grip ends it"

GUIDE = Guide(
    do="Pull the handle slowly, first with a loose hand, then with a firm one.",
    feel="It sticks and slips three times a second; a hand that damps enough makes it slide.",
    see="The force saws up and down at the predicted frequency; above the critical damping it does not.",
)

DELAY, PERIOD = 0.5e-3, 1e-3
"""Delay of the device and sampling period [s]. Hold and difference add half a period of delay each."""

LOOSE = 2.0
"""Damping of a loose grip [N s/m]."""

STEEPEST = -slope(0.0)
"""Grip damping at which grip and friction together increase at every speed [N s/m]."""

FIRM = 1.1
"""Damping of a firm grip, relative to `STEEPEST`."""

_FAST = 0.1
"""Initial speed of the search, at which the contact does not stick [m/s]."""

_LEAST_SLIP = 20
"""Minimum duration of a slip [ticks]. Shorter ones are chatter of a contact that stops."""

_DIGITS = 0.01


def demonstrate(showing: Showing) -> Outcome:
    """Pull with a loose and a firm grip, and search for the critical damping between them."""
    duration = 3.0 if showing.brief else 6.0
    pull = np.array([[0.0, 0.0], [0.3, 0.0], [0.32, SPEED], [duration, SPEED]])
    path = write_path(showing.folder / "pull.csv", pull, -0.06)
    loose = np.array(showing.show(_tables(path, LOOSE, duration)).rows)
    firm = np.array(showing.record_offline(_tables(path, FIRM * STEEPEST, duration), "firm").rows)
    slips = _slips(loose)[2:]  # without the first two
    predicted, found = 1.0 / period(LOOSE, duration), 0.0
    if len(slips) > 1:
        found = float(1.0 / np.mean(np.diff(slips)))
    critical, measured = critical_damping(DELAY + PERIOD), _measured_critical(showing)
    rows = [
        derived("frequency over the predicted one", found / predicted, 0.05),
        derived("critical damping of the grip over the predicted one", measured / critical, 0.1),
        derived("slips after the first with a firm grip", float(max(len(_slips(firm)) - 1, 0)), expected=0.0),
    ]
    off = 100.0 * abs(found / predicted - 1.0)
    return Outcome(
        off,
        5.0,
        "%",
        f"{found:.2f} slips a second; predicted {predicted:.2f}, which is off by",
        rows,
        lambda figure: _draw(figure, loose, firm, predicted),
        [Scene(f"loose grip, {LOOSE:g} N s/m", loose), Scene(f"firm grip, {FIRM * STEEPEST:.0f} N s/m", firm)],
        {"critical_damping_ns_per_m": {"measured": measured, "predicted": critical}},
    )


def _tables(path: str, grip_damping: float, duration: float, resolution: float = 1e-6) -> Tables:
    fine: dict[str, Any] = {"resolution": resolution, "velocity_estimator": "difference"}
    return {
        "session": {"model": "C", "duration": duration},
        "device": {"name": "virtual-joystick", "mass": MASS, "damping": 0.0, "delay": DELAY, **fine},
        "hand": {"name": "recorded", "file": path, "centre": False, "stiffness": GRIP, "damping": grip_damping},
        "law": {
            "name": "stribeck",
            "kinetic_force": KINETIC,
            "static_force": STATIC,
            "stribeck_velocity": STRIBECK,
        },
        "element": {"stiffness": STIFFNESS, "damping": DAMPING},
    }


def _slips(rows: Rows) -> np.ndarray:
    """Return the times at which slips begin [s]."""
    changes = np.diff(rows["sticking"].astype(int))
    begins, ends = np.flatnonzero(changes == -1) + 1, np.flatnonzero(changes == 1) + 1
    following = np.searchsorted(ends, begins)
    long = np.append(ends, len(rows))[following] - begins > _LEAST_SLIP
    return np.asarray(rows["time"][begins[long]])


def _measured_critical(showing: Showing) -> float:
    """Return the grip damping above which steady sliding is stable [N s/m], by bisection.

    The hand starts fast, without sticking, and slows down. Without disturbances, the onset of sticking depends on the
    slope of the law alone. The encoder is therefore perfect here.
    """
    slow = SPEED
    knots = np.array([[0.0, 0.0], [0.2, _FAST], [0.4, _FAST], [1.4, slow], [4.2, slow]])
    path = write_path(showing.folder / "slowing.csv", knots, -0.09)

    def sticks(damping: float) -> bool:
        config = complete(_tables(path, damping, 4.2, 0.0))
        rows = offline_rows(config.device, config.device_settings, config.built_element, 4.2)
        return bool(rows["sticking"][-1000:].any())

    low, high = 0.0, 50.0
    while high - low > _DIGITS * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sticks(middle) else (low, middle)
    return 0.5 * (low + high)


def _draw(figure: Figure, loose: Rows, firm: Rows, predicted: float) -> None:
    above, below = figure.subplots(2, 1, sharex=True)
    for rows, colour, label in ((loose, ORANGE, f"loose grip, {LOOSE:g} N s/m"), (firm, BLUE, "firm grip")):
        above.plot(rows["time"], rows["friction_force"][:, 0], color=colour, linewidth=1.1, label=label)
        below.plot(rows["time"], 1e3 * (rows["proxy"][:, 0] - rows["proxy"][0, 0]), color=colour, linewidth=1.3)
    begins = _slips(loose)
    if len(begins) > 2:
        expected = np.arange(begins[2], loose["time"][-1], 1.0 / predicted)
        above.plot(expected, np.full(len(expected), 1.08 * STATIC), "v", color=INK, label="predicted slips")
    above.legend(loc="lower right", fontsize=9)
    dress(above, "", "friction [N]", TITLE)
    dress(below, "time [s]", "way of the contact [mm]")
