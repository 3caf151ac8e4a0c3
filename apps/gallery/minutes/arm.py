"""The arm: gear twist that motor encoders do not measure, and its compensation by feed-forward.

Model A on an arm with 10 N m of friction in its joints. Encoders on the motors do not measure how far this friction
twists the gears. The remaining error under PID control is this twist. The twist can be predicted without a simulation,
from the commanded motion and the force of the hand. Feed-forward of the flat motor reference (Weigand et al. 2020,
(20)) turns the motor in advance by the twist.

No sensor measures the true position of the handle. It is taken from a second, identical run that is observed from
outside (`apps.reproduce.kikuuwe_arm`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from apps.gallery.showing import Guide, Outcome, Scene, Showing, Tables, derived
from apps.reproduce.kikuuwe_arm import FRICTION, HAND, HANDLE, MASS, experiment, trial_measures
from apps.reproduce.outcome import Bound, Row
from apps.reproduce.planar import norms
from apps.reproduce.style import BLUE, INK, ORANGE, dress
from apps.reproduce.tour import Tour, smooth
from devices import create_device
from devices.virtual.arm import VirtualArm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "the arm: its gears twist unseen, and flatness-based feed-forward turns them back"

GUIDE = Guide(
    do="Lead the arm from point to point.",
    feel="With feed-forward it glides; with PID alone it knocks where a joint turns round.",
    see="How far the handle is from where the model wants it, and how far the gears must be twisted by friction.",
)

SEED = 16

SHARE = 3.0
"""Required ratio of the twist to the error with feed-forward.

A smooth law does not model the friction at rest.
"""

_RESTS = 1e-3
"""Speed below which a joint counts as at rest and keeps its last friction direction [rad/s]."""

_WINDOW = 0.02
"""Width of the smoothing window of the joint angles [s]."""

Array = NDArray[np.float64]


def demonstrate(showing: Showing) -> Outcome:
    """Run the arm with both control laws and compare."""
    pid, flat = experiment("pid"), experiment("flatness")
    shown = showing.show(_tables("flatness", flat))
    beside = showing.record_offline(_tables("pid", pid), "pid")
    off_clock = [(shown, flat)] if not showing.windows and not showing.streams else []
    differ = max(
        float(np.abs(recording.rows["command"] - run.rows["command"]).max())
        if len(recording.rows) == len(run.rows)
        else math.inf
        for recording, run in [*off_clock, (beside, pid)]
    )
    twists = twisted(pid)
    twist = 1e6 * float(np.sqrt(np.mean(np.sum(twists[:-1] ** 2, axis=1))))
    error, measures = 1e6 * trial_measures(pid).error_rms, trial_measures(flat)
    left, watched = 1e6 * measures.error_rms, "difference of the recorded runs to those that were watched"
    rows = [
        derived("error with PID over the twist of the gears", error / twist, 0.1),
        derived("friction felt with feed-forward over that asked for", measures.level / FRICTION, 0.01),
        derived("drift of the contact at rest", 1e6 * measures.reference_drift, expected=0.0, unit="um"),
        Row("how many times closer than PID", Bound(minimum=SHARE), error / left, source="guard"),
        derived(watched, 1e6 * differ, expected=0.0, unit="um"),
    ]
    sentence = f"the handle is off by {error:.0f} um with PID, {twist:.0f} um predicted; with feed-forward by"
    return Outcome(
        left,
        twist / SHARE,
        "um",
        sentence,
        rows,
        lambda figure: _draw(figure, pid, flat, twists),
        [Scene("feed-forward", _seen(flat)), Scene("PID", _seen(pid))],
        {"error_um": {"pid": error, "flatness": left, "twist": twist}},
    )


def twisted(run: Tour) -> Array:
    """Return the displacement of the handle by gear twist at every tick, shape (n, 2) [m].

    The torque through a gear is the joint friction minus the torque of the hand. It twists the gear by torque over
    stiffness and moves through half of the lost motion. Inertia is neglected.
    """
    body = cast(VirtualArm, create_device("virtual-arm", _device("pid"))).body
    joints = np.unwrap(np.array(body.linkage.joints(run.rows["command"])), axis=0)
    speed = np.gradient(smooth(joints, run.period, _WINDOW), run.period, axis=0)
    # current or last direction of motion of each joint
    moving = np.where(np.abs(speed) > _RESTS, np.sign(speed), 0.0)
    latest = np.maximum.accumulate(np.where(moving != 0.0, np.arange(len(speed))[:, None], 0), axis=0)
    direction = np.take_along_axis(moving, latest, axis=0)
    level = body.kinetic_friction + (body.static_friction - body.kinetic_friction) * np.exp(
        -np.abs(speed) / body.stribeck_speed
    )
    friction = direction * (1.0 + body.asymmetry * direction) * (level + body.viscosity * np.abs(speed))
    jacobians = np.array(body.linkage.jacobians(joints))
    torque = friction - np.einsum("nji,nj->ni", jacobians, run.hand_force)
    slack = 0.5 * body.lost_motion * np.clip(torque / body.knee, -1.0, 1.0)
    return np.asarray(np.einsum("nij,nj->ni", jacobians, torque / body.stiffness + slack))


def _device(law: str) -> dict[str, object]:
    return {"hand": HAND, "seed": SEED, "arm": {"handle_mass": HANDLE}, "servo": {"law": law}}


def _tables(law: str, run: Tour) -> Tables:
    return {
        "session": {"model": "A", "duration": len(run.rows) * run.period},
        "device": {"name": "virtual-arm", **_device(law)},
        "law": {"name": "coulomb", "force": FRICTION},
        "element": {"mass": MASS},
    }


def _errors(run: Tour) -> Array:
    """Return the distance of the handle from its reference of the previous tick, shape (n - 1,) [m]."""
    return np.asarray(norms(run.rows["command"][:-1] - run.handle[1:]))


def _seen(run: Tour) -> Array:
    """Return the rows with the true position of the handle."""
    rows = np.array(run.rows)
    rows["position"] = run.handle
    return rows


def _draw(figure: Figure, pid: Tour, flat: Tour, twists: Array) -> None:
    above, below = figure.subplots(2, 1, height_ratios=(2.0, 1.0))
    time = pid.rows["time"]
    above.plot(time[1:], 1e6 * _errors(pid), color=ORANGE, linewidth=1.1, label="PID")
    above.plot(time, 1e6 * norms(twists), color=INK, linewidth=1.0, linestyle=":", label="predicted twist of the gears")
    above.plot(time[1:], 1e6 * _errors(flat), color=BLUE, linewidth=1.1, label="flatness-based feed-forward")
    above.set_ylim(bottom=0.0)
    above.legend(loc="upper right", fontsize=9)
    dress(above, "", "handle off by [um]", TITLE)
    for run, colour in ((pid, ORANGE), (flat, BLUE)):
        below.plot(time, norms(smooth(run.hand_force, run.period, 0.01)), color=colour, linewidth=1.0)
    below.axhline(FRICTION, color=INK, linewidth=0.8, linestyle=":")
    dress(below, "time [s]", "force of the hand [N]")
