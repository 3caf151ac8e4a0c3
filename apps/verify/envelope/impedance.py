"""Checks of the command of an impedance device, rule by rule from the output of its element.

Rules 4 to 11 (`docs/safety.md`) are applied to the recorded ``command_unlimited``. The recorded command must agree
within the rounding of its terms, and each flag must be set exactly where its rule acts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length
from apps.verify.envelope.history import History
from apps.verify.envelope.rules import Limited
from apps.verify.facts import (
    ENERGY,
    ENVELOPE,
    FADE,
    FLAGS,
    MOTION,
    PASSIVITY,
    RELEASED,
    SPEED,
    TOLD_RELEASED,
    UNUSABLE,
    WORKSPACE,
    rounding,
)
from apps.verify.findings import Findings
from apps.verify.recorded import Stretch, Window

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def check_impedance(stretch: Stretch, history: History, added: tuple[Floats, Floats], findings: Findings) -> None:
    """Check the commands and flags of a `stretch`.

    Parameters
    ----------
    stretch : Stretch
        Ticks with the same settings.
    history : History
        State of the envelope.
    added : (2,) tuple of (n,) arrays
        Damping that the passivity controller added [N s/m], and the error bound of its force [N] (`passivity`).
    findings : Findings
        Receives the findings.
    """
    state = _state(stretch, history)
    limited = _eased(stretch, history, state, added)
    torn = _limits(stretch, limited, state)
    compare(stretch, limited, stretch["command"], limited.error, torn, "N", findings)


def _state(stretch: Stretch, history: History) -> dict[str, NDArray[np.float64]]:
    """Return the velocity of the handle and the last force, (n, 2) each."""
    last = np.where(history.started_anew[stretch.rows][:, None], 0.0, stretch.last)
    return {"velocity": stretch["velocity"], "last": last}


def _eased(stretch: Stretch, history: History, state: dict[str, Floats], dampers: tuple[Floats, Floats]) -> Limited:
    """Apply the passivity damping and rules 5 and 6: fades and easing."""
    rows, (added, loose) = stretch.rows, dampers
    share, part, left = (array[rows][:, None] for array in (history.share, history.part, history.left))
    held = history.held[rows]
    damped = -added[:, None] * state["velocity"]
    asked = stretch["command_unlimited"] + damped
    through = share * asked
    error = np.asarray(rounding(length(asked), length(damped), length(held), length(state["last"]))) + loose
    limited = Limited.begin(through + part * (left * held - through), error)
    gate = stretch["gate"]
    fading = (history.gain[rows] < 1.0) | (gate < 1.0) | history.eases[rows]
    limited.mark(FADE, fading, np.zeros(len(stretch), bool))
    released = (stretch["permission"].astype(np.int64) & TOLD_RELEASED) != 0
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


def check_bounds(run: Window, findings: Findings) -> None:
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
