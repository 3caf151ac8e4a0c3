"""Checks of the command of an admittance device, rule by rule from the velocity of its element.

The rules act on the velocity of the reference; the command is the reference. The velocity is the difference of recorded
references over a period, with a rounding error of a few eps |c|/T.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.inclusion import length
from apps.verify.envelope.history import History
from apps.verify.envelope.impedance import compare
from apps.verify.envelope.rules import Limited
from apps.verify.facts import (
    ENERGY,
    EPS,
    FADE,
    MOTION,
    RELEASED,
    TOLD_RELEASED,
    WORKSPACE,
    rounding,
)
from apps.verify.findings import Findings
from apps.verify.recorded import Stretch, Window

Floats = NDArray[np.float64]


def braking(history: History, rows: slice) -> NDArray[np.bool_]:
    """Return the ticks of a fade-out.

    There the reference brakes, and the hand's force acts in full.
    """
    share = history.share[rows]
    return np.asarray((share < history.before[rows]) | (share == 0.0))


def blur(stretch: Stretch) -> Floats:
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
    asked = np.where(braking(history, rows)[:, None], share[:, None] * output, output)
    error = np.asarray(rounding(length(output), length(last))) + 2.0 * blur(stretch)[:, 0]
    limited = Limited.begin(asked, error)
    nowhere = np.zeros(len(stretch), bool)
    limited.mark(FADE, (history.gain[rows] < 1.0) | (stretch["gate"] < 1.0), nowhere)
    limited.mark(RELEASED, (stretch["permission"].astype(np.int64) & TOLD_RELEASED) != 0, nowhere)
    limited.norm(float(run.limit("max_speed")))
    limited.slew(last, float(run.limit("max_acceleration")) * T)
    _energy_and_edges(stretch, limited)
    limited.vector = stretch.reference + T * limited.vector
    slack = T * limited.error + np.asarray(rounding(length(stretch.reference)))
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


def check_bounds(run: Window, findings: Findings) -> None:
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
