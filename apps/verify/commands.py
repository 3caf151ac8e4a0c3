"""Checks of the command, rule by rule from the output of the element.

Rules 4 to 11 (`docs/safety.md`) are applied to the recorded ``command_unlimited``. The recorded command must agree
within the rounding of its terms, and each flag must be set exactly where its rule acts.

On an admittance device the rules act on the velocity of the reference; the command is the reference. The velocity is
the difference of recorded references over a period, with a rounding error of a few eps |c|/T.

A flag is uncertain where the deciding value is within rounding of its limit. There it may be set or not. The vector
after a rule is continuous at the limit unless stated otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.verify.findings import Findings
from apps.verify.history import History
from apps.verify.inclusion import length, units
from apps.verify.recorded import (
    ENERGY,
    ENVELOPE,
    EPS,
    FADE,
    FLAGS,
    LIMITED,
    MOTION,
    PASSIVITY,
    RELEASED,
    RELEASED_BIT,
    SLEW,
    SPEED,
    SPEED_MARGIN,
    UNUSABLE,
    WORKSPACE,
    Stretch,
    Window,
    rounding,
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class Limited:
    """Force or velocity vectors while the rules are applied.

    Attributes
    ----------
    vector : (n, 2) array
        Vector after the rules already applied.
    error : (n,) array
        Bound on its rounding error.
    flags, doubtful : (n,) int array
        Flags that the rules set, and uncertain flags.
    """

    vector: Floats
    error: Floats
    flags: NDArray[np.int64]
    doubtful: NDArray[np.int64]

    @classmethod
    def begin(cls, vector: Floats, error: Floats) -> Limited:
        """Return the state before any rule."""
        return cls(vector, error, np.zeros(len(vector), np.int64), np.zeros(len(vector), np.int64))

    def mark(self, flag: int, where: Mask, doubtful: Mask) -> None:
        """Set a flag, and mark where it is uncertain."""
        self.flags |= np.where(where, flag, 0)
        self.doubtful |= np.where(doubtful, flag, 0)

    def norm(self, limit: float) -> None:
        """Apply rule 7: limit the norm to `limit` and keep the direction."""
        size = length(self.vector)
        over = size > limit
        self.mark(LIMITED, over, np.abs(size - limit) <= self.error)
        self.vector = np.where(over[:, None], self.vector * (limit / np.maximum(size, 1e-300))[:, None], self.vector)

    def slew(self, last: Floats, step: float) -> None:
        """Apply rule 8: limit the change from the last value to `step`."""
        change = self.vector - last
        size = length(change)
        over = size > step
        self.mark(SLEW, over, np.abs(size - step) <= self.error)
        shortened = last + change * (step / np.maximum(size, 1e-300))[:, None]
        self.vector = np.where(over[:, None], shortened, self.vector)

    def _takes(self, direction: Floats, share: Floats, where: Mask, doubtful: Mask, flag: int) -> None:
        """Remove a share of the component along a direction, if that component is positive."""
        along = units(direction)
        part = (self.vector * along).sum(axis=1)
        near = np.abs(part) <= self.error
        acts = where & (part > 0.0)
        self.mark(flag, acts, (doubtful & (part > -self.error)) | (near & (where | doubtful)))
        self.vector = self.vector - np.where(acts, share * part, 0.0)[:, None] * along

    def driving(self, velocity: Floats, limit: float) -> None:
        """Apply rule 9: reduce a driving force near the speed `limit`, to zero at the limit."""
        margin = SPEED_MARGIN * limit
        excess = length(velocity) - (limit - margin)
        share = np.clip(excess / margin, 0.0, 1.0)
        self._takes(velocity, share, excess > 0.0, np.abs(excess) <= 16.0 * EPS * limit, SPEED)

    def energy(self, direction: Floats, spent: Mask) -> None:
        """Apply rule 10: where the energy is `spent`, remove the component along a direction."""
        self._takes(direction, np.ones(len(spent)), spent, np.zeros(len(spent), bool), ENERGY)

    def inside(self, position: Floats, low: Floats, high: Floats, *, marks: bool = True) -> None:
        """Apply rule 11 to a force: outside the workspace, remove outward components."""
        for i in range(2):
            force = self.vector[:, i]
            beyond, before = position[:, i] > high[i], position[:, i] < low[i]
            stops = (beyond & (force > 0.0)) | (before & (force < 0.0))
            if marks:
                near = (beyond | before) & (np.abs(force) <= self.error)
                self.mark(WORKSPACE, stops, near)
            self.vector[:, i] = np.where(stops, 0.0, force)


def check_impedance(stretch: Stretch, history: History, added: tuple[Floats, Floats], findings: Findings) -> None:
    """Check the commands and flags of a `stretch`.

    Parameters
    ----------
    stretch : Stretch
        Ticks with the same settings.
    history : History
        State of the envelope.
    added : (2,) tuple of (n,) arrays
        Damping that the passivity controller added [N s/m], and the error bound of its force [N] (`energy.Controller`).
    findings : Findings
        Receives the findings.
    """
    last = np.where(history.started_anew[stretch.rows][:, None], 0.0, stretch.last)
    state = {"velocity": stretch["velocity"], "last": last}
    limited = _eased(stretch, history, state, added)
    torn = _limits(stretch, limited, state)
    compare(stretch, limited, stretch["command"], limited.error, torn, "N", findings)


def _eased(stretch: Stretch, history: History, state: dict[str, Floats], dampers: tuple[Floats, Floats]) -> Limited:
    """Apply the passivity damping and rules 5 and 6: fades and easing."""
    rows, (added, loose) = stretch.rows, dampers
    share, part, left = (array[rows][:, None] for array in (history.share, history.part, history.left))
    held = history.held[rows]
    damped = -added[:, None] * state["velocity"]
    wanted = stretch["command_unlimited"] + damped
    through = share * wanted
    error = rounding(length(wanted), length(damped), length(held), length(state["last"])) + loose
    limited = Limited.begin(through + part * (left * held - through), error)
    gate = stretch["gate"]
    fading = (history.gain[rows] < 1.0) | (gate < 1.0) | history.eases[rows]
    limited.mark(FADE, fading, np.zeros(len(stretch), bool))
    released = (stretch["permission"].astype(np.int64) & RELEASED_BIT) != 0
    limited.mark(RELEASED, released, np.zeros(len(stretch), bool))
    limited.mark(PASSIVITY, added > 0.0, np.zeros(len(stretch), bool))
    return limited


def _limits(stretch: Stretch, limited: Limited, state: dict[str, Floats]) -> Mask:
    """Apply rules 7 to 11.

    Return where rounding decides whether the final rules remove the whole force.
    """
    run, velocity = stretch.run, state["velocity"]
    top = float(run.limit("max_speed"))
    spent = stretch["injected_energy"] > float(run.limit("max_energy"))
    if stretch.settings.get("model") == MOTION:
        spent = np.zeros(len(stretch), bool)
    low, high = (np.array(run.metadata["device"][name], float) for name in ("workspace_min", "workspace_max"))
    limited.norm(float(run.limit("max_force")))
    limited.slew(state["last"], float(run.limit("max_force_rate")) * run.period)
    limited.driving(velocity, top)
    limited.energy(velocity, spent)
    limited.inside(stretch["position"], low, high)
    stopped = (limited.flags & WORKSPACE) != 0
    if not stopped.any():
        return np.zeros(len(stretch), bool)
    return _again(stretch, limited, stopped, (velocity, top, spent, low, high))


def _again(
    stretch: Stretch, limited: Limited, stopped: Mask, given: tuple[Floats, float, Mask, Floats, Floats]
) -> Mask:
    """Apply rules 9 to 11 again where rule 11 acted.

    The part of a braking force that rule 11 leaves may drive the handle.
    """
    velocity, top, spent, low, high = given
    before, flags, doubtful = limited.vector.copy(), limited.flags.copy(), limited.doubtful.copy()
    limited.driving(velocity, top)
    limited.energy(velocity, spent)
    limited.inside(stretch["position"], low, high, marks=False)
    limited.vector = np.where(stopped[:, None], limited.vector, before)
    limited.flags, limited.doubtful = (
        np.where(stopped, limited.flags, flags),
        np.where(stopped, limited.doubtful, doubtful),
    )
    power = (limited.vector * velocity).sum(axis=1)
    acts = stopped & ((limited.flags & (SPEED | ENERGY)) != 0)
    limited.vector = np.where((acts & (power > 0.0))[:, None], 0.0, limited.vector)
    unsure = np.abs(power) <= limited.error * np.maximum(length(velocity), 1e-300)
    return np.asarray(acts & unsure)


def compare(
    stretch: Stretch, limited: Limited, command: Floats, error: Floats, torn: Mask, unit: str, findings: Findings
) -> None:
    """Compare commands and flags of good ticks with the rules.

    Where `torn`, zero is accepted too.
    """
    good, tick = stretch.good, stretch.tick
    off = length(command - limited.vector)
    off = np.where(torn & (length(command) <= error), 0.0, off)
    words = "the command is not what the rules of the envelope make of the output"
    findings.residual("command", "command", tick, off, error, unit, words, good)
    status = stretch.run.status[stretch.rows]
    wrong = (status ^ limited.flags) & ENVELOPE & ~UNUSABLE & ~limited.doubtful
    for name, flag in FLAGS.items():
        broken = good & ((wrong & flag) != 0)
        findings.where(
            "flag",
            tick,
            broken,
            lambda k, name=name, flag=flag: (  # type: ignore[misc]
                f"the flag {name} is set, but its rule did nothing"
                if status[k] & flag
                else f"the rule of the flag {name} acted, but the flag is not set"
            ),
        )


def check_force_bounds(run: Window, findings: Findings) -> None:
    """Check every command of an impedance device against the limits, independently of its cause."""
    command, tick = run.column("command"), run.tick
    norm, most = length(command), float(run.limit("max_force"))
    beyond = ~(norm <= most * (1.0 + 1e-12))
    findings.where("limit", tick, beyond, lambda k: f"a force of {norm[k]:.6g} N was sent; the limit is {most:g} N")
    step = float(run.limit("max_force_rate")) * run.period
    change = length(command - run.last)
    taken = run.status & (SPEED | ENERGY | WORKSPACE | UNUSABLE)
    fast = run.good & (taken == 0) & ~(change <= step * (1.0 + 1e-9) + 1e-12 * most)
    fast &= np.concatenate(([True], (taken[:-1] & UNUSABLE) == 0)) if len(fast) else fast
    findings.where(
        "limit", tick, fast, lambda k: f"the force changed by {change[k]:.6g} N in a tick; the limit is {step:g} N"
    )


def braking(history: History, rows: slice) -> NDArray[np.bool_]:
    """Return the ticks of a fade-out.

    There the reference brakes, and the hand's force acts in full.
    """
    share = history.share[rows]
    return np.asarray((share < history.before[rows]) | (share == 0.0))


def velocity_blur(stretch: Stretch) -> Floats:
    """Return the error bound of velocities that are differences of references [m/s], (n, 1)."""
    size = np.maximum(length(stretch["command"]), length(stretch.reference))
    size = np.maximum(np.where(np.isfinite(size), size, 0.0), length(stretch["command_unlimited"]))
    blurred: Floats = 4.0 * EPS * size[:, None] / stretch.run.period
    return blurred


def output_of(stretch: Stretch) -> Floats:
    """Return the velocity output of the element, (n, 2) [m/s]."""
    output: Floats = (stretch["command_unlimited"] - stretch.reference) / stretch.run.period
    return output


def check_admittance(stretch: Stretch, history: History, findings: Findings) -> None:
    """Check the references and flags of a `stretch`."""
    run, rows, T = stretch.run, stretch.rows, stretch.run.period
    share = history.share[rows]
    output, last = output_of(stretch), stretch.last
    last = np.where(history.started_anew[rows][:, None], 0.0, last)
    wanted = np.where(braking(history, rows)[:, None], share[:, None] * output, output)
    error = rounding(length(output), length(last)) + 2.0 * velocity_blur(stretch)[:, 0]
    limited = Limited.begin(wanted, error)
    nowhere = np.zeros(len(stretch), bool)
    limited.mark(FADE, (history.gain[rows] < 1.0) | (stretch["gate"] < 1.0), nowhere)
    limited.mark(RELEASED, (stretch["permission"].astype(np.int64) & RELEASED_BIT) != 0, nowhere)
    limited.norm(float(run.limit("max_speed")))
    limited.slew(last, float(run.limit("max_acceleration")) * T)
    _energy_and_edges(stretch, limited)
    limited.vector = stretch.reference + T * limited.vector
    slack = T * limited.error + rounding(length(stretch.reference))
    compare(stretch, limited, stretch["command"], slack, nowhere, "m", findings)


def _energy_and_edges(stretch: Stretch, limited: Limited) -> None:
    """Apply rules 10 and 11."""
    run, force = stretch.run, stretch["force"]
    spent = stretch["injected_energy"] > float(run.limit("max_energy"))
    if stretch.settings.get("model") == MOTION:
        spent = np.zeros(len(stretch), bool)
    limited.energy(-force, spent)
    low, high = (run.metadata["device"][name] for name in ("workspace_min", "workspace_max"))
    for i in range(2):
        _approach(stretch, limited, i, float(low[i]), float(high[i]))
    against = (limited.vector * force).sum(axis=1)
    stopped = ((limited.flags & WORKSPACE) != 0) & spent
    near = np.abs(against) <= limited.error * length(force)
    limited.mark(ENERGY, stopped & (against < 0.0), stopped & near)
    limited.vector = np.where((stopped & (against < 0.0))[:, None], 0.0, limited.vector)


def _approach(stretch: Stretch, limited: Limited, i: int, low: float, high: float) -> None:
    """Apply rule 11 to a coordinate: stop the reference at the edge with 8/9 of the maximum deceleration.

    Stopping from v in steps of T takes v^2/(2 a) + v T/2.
    """
    run, T = stretch.run, stretch.run.period
    x, v = stretch.reference[:, i], limited.vector[:, i]
    room = np.where(v > 0.0, np.maximum(high - x, 0.0), np.maximum(x - low, 0.0))
    a = float(run.limit("max_acceleration")) * 8.0 / 9.0
    half = 0.5 * a * T
    fastest = np.minimum(np.sqrt(half * half + 2.0 * a * room) - half, room / T)
    slack = limited.error + 8.0 * EPS * (np.abs(x) + math.hypot(low, high)) / T
    near = np.abs(np.abs(v) - fastest) <= slack
    limited.mark(WORKSPACE, np.abs(v) > fastest, near)
    limited.vector[:, i] = np.where(np.abs(v) > fastest, np.copysign(fastest, v), v)
    limited.error = slack


def check_reference_bounds(run: Window, findings: Findings) -> None:
    """Check every reference of an admittance device against the limits, independently of its cause."""
    command, tick, T = run.column("command"), run.tick, run.period
    known = np.isfinite(command).all(axis=1)
    slack = 8.0 * EPS * np.where(known, length(command), 0.0) / T
    speed, most = length(command - run.reference) / T, float(run.limit("max_speed"))
    beyond = known & ~(speed <= most * (1.0 + 1e-12) + slack)
    findings.where("limit", tick, beyond, lambda k: f"the reference moved at {speed[k]:.6g} m/s; the limit is {most:g}")
    low, high = (np.array(run.metadata["device"][name], float) for name in ("workspace_min", "workspace_max"))
    edge = 1e-9 * (1.0 + np.abs(np.stack((low, high))).max())
    outward = ((command > high + edge) & (command > run.reference)) | (
        (command < low - edge) & (command < run.reference)
    )
    findings.where(
        "limit", tick, outward.any(axis=1) & known, "the reference went on outwards beyond the edge of the workspace"
    )
    sent = run.good & ~known
    findings.where("command", tick, sent, "no finite reference was sent in a tick with a usable sample")
