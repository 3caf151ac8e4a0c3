"""Outcomes of a simulated session."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.records import Rows, Status

if TYPE_CHECKING:
    from apps.settings.config import SessionConfig

UNSTABLE = int(Status.NOT_FINITE | Status.IMPLAUSIBLE | Status.SPEED | Status.ENERGY | Status.ASTRAY)
"""Status flags that mark a session as unstable."""

OUTCOMES: dict[str, str] = {
    "stable": "1 where no flag of trouble was set and the buzz is below sweep.buzz_limit; else 0",
    "stick_fraction": "share of the ticks in which the contact sticks",
    "friction_mean_n": "friction force while the contact slides, mean [N]",
    "friction_std_n": "friction force while the contact slides, standard deviation [N]",
    "friction_max_n": "largest friction force [N]",
    "breakaway_error": "how far friction_max_n is from the (largest) break-away force of the law, relative to that",
    "direction_error_deg": "angle between friction and sliding, mean while the contact slides [deg]",
    "felt_mean_n": "force of the hand along the sliding, mean [N]; none on an admittance device",
    "felt_error": "how far felt_mean_n is from friction_mean_n, relative to that",
    "buzz": "command above 10 Hz, root mean square [N or m]",
    "rest_buzz": "the same while the contact sticks [N or m]",
    "drift_m_per_s": "slope of the straight line that fits the position best [m/s]",
    "creep_m_per_s": "how fast the proxy goes away while the contact sticks: the way between its ends, over the time",
    "path_m": "path of the end effector [m]",
    "largest_speed_m_per_s": "largest speed of the end effector [m/s]",
    "largest_command": "largest command [N or m]",
    "injected_energy_j": "largest energy that the loop had injected [J]",
    "unusable_ticks": "ticks without a usable sample",
    "flags": "all flags that were set, as bits (haptics.Status)",
    "bound_growth_per_s": "what the bound says: growth of the sticking loop with the bare device, stable below 0 [1/s]",
}
"""Description of each outcome by name."""

Function = Callable[[Rows], Any]


def outcomes_of(sums: Any, config: SessionConfig, buzz_limit: float) -> dict[str, float | int | None]:
    """Return the outcomes of a session, except the bound, from one record of `apps.sweep.running.SUMS`."""
    element, causality = config.built_element, config.causality
    strongest = config.strongest_element.law.breakaway_force
    n, sliding = max(int(sums["ticks"]), 1), int(sums["sliding"])
    mean = _ratio(sums["slide"], sliding)
    square = _ratio(sums["slide_square"], sliding)
    impedance = causality is Causality.IMPEDANCE
    felt = _ratio(sums["felt"], int(sums["known"])) if impedance else None
    n_ticks, t, square_t = float(sums["ticks"]), float(sums["t"]), float(sums["t_square"])
    spread, drift = n_ticks * square_t - t * t, 0.0  # speed of the least-squares line through the positions
    if spread > 0.0:
        slopes = ((n_ticks * float(sums["x_t"][i]) - t * float(sums["x"][i])) / spread for i in range(2))
        drift = math.hypot(*slopes)
    rest = _ratio(sums["rest_buzz"], int(sums["sticking"]))
    buzz, friction_max = math.sqrt(float(sums["buzz"]) / n), float(sums["friction_max"])
    quiet = not impedance or buzz <= buzz_limit * friction_max
    return {
        "stable": int(quiet and not int(sums["flags"]) & UNSTABLE and int(sums["ticks"]) > 0),
        "stick_fraction": float(sums["sticking"]) / n,
        "friction_mean_n": mean,
        "friction_std_n": None if mean is None or square is None else math.sqrt(max(square - mean * mean, 0.0)),
        "friction_max_n": friction_max,
        "breakaway_error": _relative(friction_max, strongest),
        "direction_error_deg": None if not sliding else math.degrees(float(sums["aside"]) / sliding),
        "felt_mean_n": felt,
        "felt_error": _relative(felt, mean),
        "buzz": buzz,
        "rest_buzz": None if rest is None else math.sqrt(rest),
        "drift_m_per_s": drift,
        "creep_m_per_s": _ratio(math.hypot(*sums["crept"]) / element.period, int(sums["sticking"])),
        "path_m": float(sums["path"]),
        "largest_speed_m_per_s": float(sums["speed_max"]),
        "largest_command": float(sums["command_max"]),
        "injected_energy_j": float(sums["energy_max"]),
        "unusable_ticks": int(sums["unusable"]),
        "flags": int(sums["flags"]),
    }


def _ratio(total: Any, count: int) -> float | None:
    return float(total) / count if count else None


def _relative(value: float | None, reference: float | None) -> float | None:
    """Return the relative deviation of a value from a reference."""
    return None if value is None or not reference else value / reference - 1.0


def bound_growth(config: SessionConfig) -> float | None:
    """Return the growth rate of the bare device while the contact sticks [1/s], or None without a bound.

    It is the rate of the dominant eigenvalue of `haptics.design.loops.stuck_matrix`. The hand is not modelled.
    """
    from haptics.design.loops import Coupling, Handle, growth, stuck_matrix

    handle, element = Handle.of(config.spec), config.built_element
    if config.causality is not Causality.IMPEDANCE or handle is None or not hasattr(element, "stiffness"):
        return None
    coupling = Coupling(element.coupling_stiffness, getattr(element, "damping", 0.0), element.period)
    return math.log(max(growth(stuck_matrix(coupling, handle)), 1e-300)) / element.period


# --- user-defined function ---


def load_function(place: str) -> Function | None:
    """Return the function at ``MODULE:NAME``, or None for an empty string.

    Raises
    ------
    ConfigurationError
        If it cannot be imported or is not callable.
    """
    if not place:
        return None
    module, colon, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"sweep.function = {place!r}: cannot be loaded ({error}); start where Python finds the module."
        ) from error
    if not callable(found):
        raise ConfigurationError(f"sweep.function = {place!r}: must be MODULE:NAME of a function of a session's rows.")
    result: Function = found
    return result


def numbers_of(place: str, value: Any) -> dict[str, float | None]:
    """Convert the return value of a user-defined function, a number or a table, to outcomes.

    Raises
    ------
    ConfigurationError
        If the value is neither.
    """
    name = place.partition(":")[2]
    table = value if isinstance(value, Mapping) else {name: value}
    try:
        numbers = {str(key): float(number) for key, number in table.items()}
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"sweep.function = {place!r}: must return a number or a table of numbers ({error})."
        ) from error
    return {key: number if math.isfinite(number) else None for key, number in numbers.items()}
