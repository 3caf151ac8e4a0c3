"""Experiments of Kikuuwe et al. 2006, section V: a hand visits lettered points on a device.

The whole haptic loop runs as in a session (device, rendering, envelope, servo, trace), with a clock that does not wait.
The hand makes the paper's motions: straight strokes, a curve, and a rest during which its force fluctuates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from apps.reproduce.planar import Array, norms
from apps.reproduce.style import BLUE, INK, ORANGE, PALE, dress
from devices import create_device
from devices.virtual.device import VirtualDevice
from devices.virtual.hands.minimum_jerk import MinimumJerkHand, Phase
from haptics import Clock, Element
from haptics.device import State
from haptics.servo.offline import run_offline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from haptics.records import Rows

SMOOTHING = 0.1
"""Length of the window over which measured positions and forces are smoothed [s]."""

_LETTER: dict[str, Any] = {"color": ORANGE, "fontsize": 14, "weight": "bold", "ha": "center", "va": "center"}

RELAXED = 0.3
"""Upper bound of the time in which the hand relaxes or grips again [s]."""

MIDDLE = (0.25, 0.75)
"""Part of a stroke without its beginning and end."""

STEADY = (0.6, 0.9)
"""Part of a stroke in which the path is straight. The hand is ahead of the handle and already moves when the handle
turns into a new direction, so that the path bends at first. The part was chosen from these runs: from 50 % on, the bend
still turns the force by 0.2 deg on the shortest stroke of the arm.
"""


@dataclass(frozen=True)
class Tour:
    """Completed run.

    Attributes
    ----------
    rows : structured array
        One trace row per tick.
    hand : MinimumJerkHand
        Hand that moved the device, with its points and phases.
    period : float
        Period of a tick [s].
    handle, velocity, hand_force : (n, 2) float array
        True values at every tick, which no sensor provides: position [m] and velocity [m/s] of the handle, and force of
        the hand [N].
    """

    rows: Rows
    hand: MinimumJerkHand
    period: float
    handle: Array
    velocity: Array
    hand_force: Array

    def phase(self, label: str) -> Phase:
        """Return the phase with this label."""
        return next(phase for phase in self.hand.phases if phase.label == label)

    def ticks(self, label: str, part: tuple[float, float] = (0.0, 1.0)) -> slice:
        """Return the ticks of a phase, or of a `part` of its duration, from 0 to 1."""
        phase = self.phase(label)
        begin, end = (round((phase.start + share * phase.duration) / self.period) for share in part)
        return slice(begin, end)

    def rest(self, label: str) -> slice:
        """Return the ticks during which the hand is relaxed at a point of rest."""
        phase = self.phase(label)
        end = phase.start + phase.duration - RELAXED
        return slice(round((phase.start + RELAXED) / self.period), round(end / self.period))

    def slide(self, label: str) -> slice:
        """Return the ticks of a stroke from break-away to the next sticking.

        Both ends are at rest, so the net momentum of the model's mass over these ticks is zero.
        """
        inside, sliding = self.ticks(label), self.rows["sticking"] == 0
        half = (inside.start + inside.stop) // 2
        first = int(np.flatnonzero(~sliding[:half])[-1]) + 1
        return slice(first, half + int(np.argmin(sliding[half:])))


class Watched:
    """Virtual device that adds its true state as channels, which its sensors do not provide.

    Parameters
    ----------
    device : VirtualDevice
        Wrapped device. The true position [m] and velocity [m/s] of its handle replace its channels. Everything else of
        `haptics.device.Device` is unchanged.
    """

    def __init__(self, device: VirtualDevice) -> None:
        self.device = device
        self.spec = replace(device.spec, channels=(("handle", "m", 2), ("handle_velocity", "m/s", 2)))
        self.open, self.write, self.close = device.open, device.write, device.close

    def read(self) -> State:
        """Take a sample and add the true state."""
        state = self.device.read()
        state.channels = np.concatenate((self.device.handle, self.device.handle_velocity))
        return state


def tour(device: str, settings: dict[str, Any], element: Element, last: str) -> Tour:
    """Run `joystick_element` on a virtual device until the hand has visited the point `last`."""

    def make(clock: Clock | None = None) -> Watched:
        return Watched(cast(VirtualDevice, create_device(device, settings, clock=clock)))

    hand = cast(MinimumJerkHand, make().device.hand)
    end = next(phase.start + phase.duration for phase in hand.phases if phase.label == last)
    rows = run_offline(make, element, end, keep_rows=True).rows
    assert rows is not None, "they were asked for"
    truth = rows["channels"][:, :2], rows["channels"][:, 2:4], rows["hand_force"]
    return Tour(rows, hand, element.period, *(np.array(seen) for seen in truth))


@dataclass(frozen=True)
class Motion:
    """Smoothed motion of the end effector, one row per tick, from the trace alone.

    Attributes
    ----------
    velocity, acceleration : (n, 2) float array
        Backward differences of the position and of the velocity [m/s], [m/s^2].
    """

    velocity: Array
    acceleration: Array

    @property
    def along(self) -> Array:
        """Acceleration along the path, (n,) [m/s^2]."""
        return np.asarray(np.sum(self.acceleration * self.velocity, axis=1) / norms(self.velocity))

    @property
    def inwards(self) -> Array:
        """Acceleration across the path, (n,) [m/s^2], positive to the left of the motion."""
        v, a = self.velocity, self.acceleration
        return np.asarray((v[:, 0] * a[:, 1] - v[:, 1] * a[:, 0]) / norms(v))

    @property
    def radius(self) -> Array:
        """Radius of the path, (n,) [m], positive for a turn to the left."""
        return np.asarray(norms(self.velocity) ** 2 / self.inwards)


def smooth(values: Array, period: float, length: float = SMOOTHING) -> Array:
    """Return the columns of `values` (n, m), smoothed without delay by a Hann window of that `length` [s]."""
    half = round(0.5 * length / period)
    bell = np.hanning(2 * half + 3)[1:-1]
    padded = np.pad(values, ((half, half), (0, 0)), mode="edge")
    columns = [np.convolve(padded[:, i], bell / bell.sum(), mode="valid") for i in range(values.shape[1])]
    return np.column_stack(columns)


def motion_of(run: Tour, ticks: slice) -> Motion:
    """Return the smoothed motion of the measured position at `ticks`, at nonzero velocity."""
    position = smooth(run.rows["position"], run.period)
    velocity = np.diff(position, axis=0, prepend=position[:1]) / run.period
    acceleration = np.diff(velocity, axis=0, prepend=velocity[:1]) / run.period
    return Motion(velocity[ticks], acceleration[ticks])


# --- pictures -----------------------------------------------------------------------------------------------------


def draw_path(
    figure: Figure,
    title: str,
    run: Tour,
    vectors: Array,
    every: float,
    scale: tuple[float, float],
    offsets: dict[str, tuple[int, int]],
) -> None:
    """Plot the path as a thick line with force vectors as thin lines, and the lettered points.

    Parameters
    ----------
    title : str
        Title of the figure.
    vectors : (n, 2) array
        Force at every tick [N].
    every : float
        Time between drawn vectors [s].
    scale : (float, float)
        A length in the picture [mm] and the corresponding force [N].
    offsets : dict
        Offset of each letter from its point [points].
    """
    from matplotlib.collections import LineCollection

    axes, (length, unit) = figure.subplots(), scale
    place = run.rows["position"] * 1e3
    axes.plot(place[:, 0], place[:, 1], color="#C4C4C4", linewidth=6.0, zorder=2, label="measured path")
    step = round(every / run.period)
    start = place[::step]
    segments = np.stack((start, start + vectors[::step] * (length / unit)), axis=1)
    axes.add_collection(LineCollection(list(segments), colors=BLUE, linewidths=0.7, zorder=3))
    axes.plot([], [], color=BLUE, linewidth=1.5, label=f"force, every {every:g} s")
    for letter, offset in offsets.items():
        spot = place[run.ticks(letter, (0.5, 0.5)).start]
        axes.plot(*spot, "o", color=ORANGE, markersize=7, zorder=5)
        axes.annotate(letter, spot, offset, textcoords="offset points", zorder=6, **_LETTER)
    axes.set_aspect("equal")
    axes.autoscale_view()
    corner = axes.get_xlim()[0] + 5.0, axes.get_ylim()[0] + 5.0
    axes.plot((corner[0], corner[0] + length), (corner[1],) * 2, color=BLUE, linewidth=2.0)
    axes.annotate(f"{unit:g} N", (corner[0] + length, corner[1]), (5, 0), textcoords="offset points", va="center")
    dress(axes, "x [mm]", "y [mm]", legend="best")
    figure.suptitle(title, color=INK)


def draw_courses(figure: Figure, title: str, run: Tour, size: Array, label: str, level: float) -> None:
    """Plot x and y, and the magnitude of a force (n,) [N], over time, with the lettered periods."""
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.3, 1.0))
    time, place = run.rows["time"], run.rows["position"] * 1e3
    above.plot(time, place[:, 0], color=INK, linewidth=1.6, label="x")
    above.plot(time, place[:, 1], color=INK, linewidth=1.6, linestyle="--", label="y")
    below.plot(time, size, color=PALE, linewidth=0.6, label=label)
    below.plot(
        time, smooth(size[:, None], run.period), color=INK, linewidth=1.2, label=f"smoothed over {SMOOTHING:g} s"
    )
    below.axhline(level, color=ORANGE, linewidth=1.0, linestyle=":", label=f"F = {level:g} N")
    below.set_ylim(bottom=0.0)
    for phase in run.hand.phases:
        if phase.origin != phase.goal or phase.start >= time[-1]:
            continue
        for axes in (above, below):
            axes.axvspan(phase.start, phase.start + phase.duration, color=ORANGE, alpha=0.12, linewidth=0)
        middle = phase.start + 0.5 * phase.duration, 1.0
        above.annotate(
            phase.label, middle, (0, 11), textcoords="offset points", xycoords=("data", "axes fraction"), **_LETTER
        )
    dress(above, "", "position [mm]")
    dress(below, "time [s]", f"{label} [N]")
    above.set_xlim(0.0, float(time[-1]))
    above.legend(loc="upper left", fontsize=10)
    below.legend(loc="lower right", fontsize=10)
    figure.suptitle(title, color=INK)
