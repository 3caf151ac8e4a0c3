"""Excitation motions that identify a handle's friction and moving mass, within the limits of a device.

Each axis moves back and forth, a few strokes at each of several speeds. Slow strokes identify the friction below the
Stribeck velocity, fast ones the viscosity. All of them cross zero velocity, so that asymmetry is observable and an
offset is separable from friction. The ends of the strokes identify the mass. The sequence is repeated in equal rounds
for cross-validation between rounds.

A position controller follows the reference, and its forces move the handle against its friction. Every round is a
separate motion (`haptics.rendering.programs`), bounded by the safety envelope and identified by its label.

A force acts later than it is commanded, and is held for a period. The delay is estimated from the recording: it is the
delay for which mass and friction explain the forces best.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.data import signals
from calibration.data.joint_recording import JointRecording, Source
from calibration.data.signals import best_cutoff, evenly, smooth
from calibration.motions.procedure import (
    Measurement,
    Mover,
    Procedure,
    complete_rounds,
    require_forces,
    rows_of,
    source_of,
)
from haptics.device import Causality, DeviceSpec
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.programs import Motion, constant_reference, reference
from haptics.settings import bounded, check, documented

Array = NDArray[np.float64]

_ROOM = 0.8
"""Fraction of the travel that is used."""

_STRENGTH = 0.4
"""Fraction of the maximum force that may be used for acceleration."""

_REST = 0.1
"""Pause between two speeds [s]."""

_APPROACH = 0.05
"""Speed of the initial motion to the middle [m/s]."""

_HOLD = 0.05
"""Duration of the initial hold before the device moves [s]."""

_UNKNOWN_MASS = 0.3
"""Moving mass assumed if the data sheet states none [kg]."""


@documented
@dataclass(frozen=True)
class Excitation:
    """Settings of the excitation."""

    slowest: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="m/s", doc="speed of the slowest strokes")
    fastest: float = bounded(0.12, minimum=1e-4, maximum=2.0, unit="m/s", doc="speed of the fastest strokes")
    speeds: int = bounded(
        8, minimum=2, maximum=50, doc="number of speeds from the slowest to the fastest, in equal ratios"
    )
    rounds: int = bounded(3, minimum=2, maximum=50, doc="how often all of it is done")
    strokes: int = bounded(2, minimum=1, maximum=100, doc="strokes at each speed of a round")
    stroke_time: float = bounded(
        0.6, minimum=0.05, maximum=60.0, unit="s", doc="duration of a stroke, unless the travel is too short for it"
    )
    acceleration: float = bounded(
        4.0, minimum=0.01, maximum=100.0, unit="m/s^2", doc="acceleration at the ends of the strokes"
    )

    def __post_init__(self) -> None:
        check(self, "excitation")
        if not self.slowest < self.fastest:
            raise ConfigurationError(
                f"excitation.slowest = {self.slowest:g} m/s: must be less than excitation.fastest = {self.fastest:g} "
                "m/s."
            )


@dataclass(frozen=True, eq=False)
class ExcitationPlan:
    """Reference of the handle at each tick, starting and ending in the middle of the workspace.

    Attributes
    ----------
    position, velocity : (n, 2) float array
        Reference [m], [m/s].
    parts : list of lists of slice
        Ticks of the rounds of x, and of the rounds of y.
    """

    position: Array
    velocity: Array
    parts: list[list[slice]]

    def __len__(self) -> int:
        return len(self.position)


def plan(excitation: Excitation, spec: DeviceSpec, period: float) -> ExcitationPlan:
    """Return the motion of both axes in sequence, within the limits of a device.

    Raises
    ------
    ConfigurationError
        If the limits of the device do not permit the requested speeds.
    """
    lower, upper = np.array(spec.workspace_min), np.array(spec.workspace_max)
    middle, travel = (lower + upper) / 2.0, _ROOM * (upper - lower)
    strongest = _STRENGTH * spec.max_force / (spec.mass or _UNKNOWN_MASS)
    acceleration = min(excitation.acceleration, strongest, spec.max_acceleration)
    places = []
    for axis in range(2):
        along = to_and_fro(excitation, float(travel[axis]), acceleration, spec.max_speed, period)
        places.append(np.tile(middle, (len(along), 1)))
        places[axis][:, axis] += along
    position, parts = repeated(places, excitation.rounds)
    return ExcitationPlan(position, _rate(position, middle, period), parts)


def repeated(motions: Sequence[Array], rounds: int) -> tuple[Array, list[list[slice]]]:
    """Return motions in sequence, each repeated a number of times, and the ticks of the rounds of each."""
    starts = iter(np.cumsum([0, *(len(motion) for motion in motions for _ in range(rounds))]).tolist())
    parts = [[slice(start := next(starts), start + len(motion)) for _ in range(rounds)] for motion in motions]
    return np.concatenate([motion for motion in motions for _ in range(rounds)]), parts


def hold_still(move: Callable[..., Motion], period: float) -> Generator[Motion, Rows, Array]:
    """Hold a device at its present position and return that position, (2,) [m]."""
    held = yield move(constant_reference(_HOLD, period), relative=True, label="hold")
    return np.array(held["proxy"][-1])


def go_to(move: Callable[..., Motion], start: Array, end: Array, period: float) -> Generator[Motion, Rows, None]:
    """Move a device slowly between two positions, (2,) each [m]; no motion if they are equal."""
    way = approach(start, end, period)
    if len(way[0]):
        yield move(reference(*way), label="approach")


def approach(start: Array, end: Array, period: float, speed: float = _APPROACH) -> tuple[Array, Array]:
    """Return position [m] and velocity [m/s], (n, 2) each, of a slow motion between two positions."""
    way = float(np.hypot(*(end - start)))
    if way == 0.0:
        return np.empty((0, 2)), np.empty((0, 2))
    along = _stroke(way, speed, speed**2 / min(way, 0.01), period)
    position = start + np.outer(along / way, end - start)
    return position, _rate(position, start, period)


def _rate(position: Array, start: Array, period: float) -> Array:
    return np.asarray(np.diff(position, axis=0, prepend=start[None, :]) / period)


def to_and_fro(excitation: Excitation, travel: float, acceleration: float, max_speed: float, period: float) -> Array:
    """Return the displacement from the middle [m] at each tick, through the strokes at all speeds."""
    rest = np.zeros(math.ceil(_REST / period))
    ways = [rest]
    for wanted in np.geomspace(excitation.slowest, excitation.fastest, excitation.speeds):
        speed = min(float(wanted), 0.5 * max_speed)
        length = min(speed * excitation.stroke_time, travel)
        if speed**2 > 0.5 * acceleration * length:
            length = min(2.0 * speed**2 / acceleration, travel)
            speed = min(speed, math.sqrt(0.5 * acceleration * length))
        if speed < excitation.slowest:
            raise ConfigurationError(
                f"excitation.slowest = {excitation.slowest:g} m/s: the device allows {speed:g} m/s only, for its "
                "travel and its force; choose slower ones."
            )
        # strokes about the middle, including the motions from there and back
        half, whole = (_stroke(way, speed, acceleration, period) for way in (length / 2.0, length))
        ways.append(half)
        side = 1.0
        for _ in range(excitation.strokes):
            ways.append(side * (length / 2.0 - whole))
            side = -side
        ways += [side * (length / 2.0 - half), rest]
    return np.concatenate(ways)


def _stroke(way: float, speed: float, acceleration: float, period: float) -> Array:
    """Return the displacement [m] at each tick of a stroke that begins and ends at rest."""
    speed = min(speed, math.sqrt(acceleration * way))
    ramp = speed / acceleration
    duration = way / speed + ramp
    time = np.minimum(period * np.arange(1, math.ceil(duration / period) + 1), duration)
    rising, falling = acceleration * time**2 / 2.0, way - acceleration * (duration - time) ** 2 / 2.0
    steady = speed * (time - ramp / 2.0)
    return np.asarray(np.where(time < ramp, rising, np.where(time > duration - ramp, falling, steady)))


# --- free handle ------------------------------------------------------------------------------------------------------

AXES = ("x", "y")

_QUICKNESS = 0.25
"""Product of the controller's natural frequency and its delay, far below the stability limit."""

_DAMPING_RATIO, _MEMORY = 0.7, 0.1
"""Damping ratio of the controller, and relative speed of its integrator."""

_MOST_FORCE = 0.8
"""Maximum fraction of the device's force that is used."""

_ASTRAY = 0.02
"""Maximum following error [m]."""

_RACING = 0.3
"""Margin of the speed limit above the fastest stroke [m/s]."""

_UNKNOWN_DELAY = 2e-3
"""Delay assumed if the data sheet states none [s]."""


class HandleExcitation(Measurement[dict[str, list[JointRecording]]]):
    """Motion of the free handle of an impedance device; the result are the rounds of x and of y.

    Parameters
    ----------
    settings : Excitation
        Settings of the motions.
    """

    table = "excitation"

    def require(self, mover: Mover) -> None:
        """Raise `ConfigurationError` unless the device accepts forces and operates without a hand on it."""
        require_forces(
            mover.spec,
            "is an admittance device and does not report its motor forces: record its joints and give the file with "
            "--data.",
        )

    def extent(self, mover: Mover) -> tuple[float, str]:
        """Return the duration [s] and the limits of the motion."""
        spec = mover.spec
        duration = len(plan(self.settings, spec, mover.period)) * mover.period
        return duration, f"with up to {self.settings.fastest:g} m/s and {spec.max_force:g} N"

    def motions(self, mover: Mover) -> Procedure:
        """Yield the motions: hold, motion to the middle, and each round of each axis.

        The position controller has PID gains for the mass of the handle, with the stiffness that its delay permits.
        """
        spec, period = mover.spec, mover.period
        whole = plan(self.settings, spec, period)
        mass = spec.mass or _UNKNOWN_MASS
        frequency = _QUICKNESS / ((_UNKNOWN_DELAY if spec.delay is None else spec.delay) + period)
        stiffness = mass * frequency**2
        motion = functools.partial(
            Motion,
            Causality.IMPEDANCE,
            bound=_MOST_FORCE * spec.max_force,
            max_error=_ASTRAY,
            max_speed=self.settings.fastest + _RACING,
            period=period,
            stiffness=stiffness,
            damping=2.0 * _DAMPING_RATIO * mass * frequency,
            integration=_MEMORY * frequency * stiffness,
        )
        held = yield from hold_still(motion, period)
        yield from go_to(motion, held, whole.position[0], period)
        for axis, parts in zip(AXES, whole.parts, strict=True):
            for number, part in enumerate(parts, 1):
                yield motion(reference(whole.position[part], whole.velocity[part]), label=f"{axis} {number}")

    def estimate(self, recording: Recording, mover: Mover) -> dict[str, list[JointRecording]]:
        """Return the rounds of x and of y."""
        return recorded_axes(recording.folder)


# --- recordings of the axes -------------------------------------------------------------------------------------------

PARTS = "excited_ticks"
"""Key of ``recording.json`` in which older versions stored the rounds."""

_LATEST = 0.02
"""Maximum delay of the search [s]."""

_STEP = 0.25e-3
"""Step of the delay in the search [s]."""

_SAME = 1e-4
"""Samples closer together in time than this are the same sample [s]."""

_MOVING = 0.1
"""Minimum speed of samples used for the delay, as a fraction of the top speed.

At lower speeds friction depends on more than speed.
"""

_LOOK = 60.0
"""Cut-off for the comparison of forces and motions [Hz]; above it, both contain position noise."""

_STEPS = 3
"""Number of secant steps that remove the bias of the delay due to that noise."""


def recorded_axes(folder: Path) -> dict[str, list[JointRecording]]:
    """Return the rounds of x and of y: motions without delay, with the forces at the same time.

    Parameters
    ----------
    folder : Path
        Recording of a `HandleExcitation`; of an interrupted one, the complete rounds are used.

    Raises
    ------
    RecordingError, ConfigurationError
        If it is not such a recording.
    """
    recording = Recording(folder)
    if not is_excitation(recording):
        raise ConfigurationError(f"{folder}: is no recording of an excitation.")
    parts = recording.metadata.get(PARTS)
    if parts is None:
        whole = complete_rounds(recording, AXES)
    else:  # older versions stored the ticks of the rounds
        rows = recording.read()
        ticks = rows["tick"]
        try:
            pairs = [[(int(begin), int(end)) for begin, end in rounds] for rounds in parts]
        except (TypeError, ValueError) as error:
            raise ConfigurationError(f"{folder}: {PARTS} must be pairs of ticks ({error}).") from error
        last = int(ticks[-1]) if len(rows) else -1
        whole = [[rows[(ticks >= a) & (ticks < b)] for a, b in rounds if b <= last + 1] for rounds in pairs[:2]]
    if not (whole and all(whole)):
        raise ConfigurationError(f"{folder}: was interrupted before both axes had been moved.")
    source = source_of(recording)
    return {axis: [joint_recording(rows, k, source) for rows in whole[k]] for k, axis in enumerate(AXES)}


def is_excitation(recording: Recording) -> bool:
    """Return True if the recording contains an excitation and not a session."""
    return PARTS in recording.metadata or any(label.startswith(AXES) for label, _ in rows_of(recording))


def joint_recording(rows: Rows, axis: int, source: Source) -> JointRecording:
    """Return the motion of one axis (0 or 1) in the rows of a round, with the forces at the same time."""
    given, command = rows["time"] + rows["period_error"], np.array(rows["command"][:, axis])
    sampled = given - rows["sample_age"]
    good = (rows["status"] & UNUSABLE) == 0
    new = good & (np.diff(np.maximum.accumulate(np.where(good, sampled, -np.inf)), prepend=-np.inf) > _SAME)
    measured = np.column_stack((rows["position"][new, axis], rows["proxy"][new, axis]))
    time, (position, reference), gaps = evenly(sampled[new], measured)
    moved = signals.motion(time, position, min(_LOOK, best_cutoff(time, position)))
    gaps = np.convolve(gaps, np.ones(2 * moved.edge + 1), "same") > 0.5  # the filter spreads their errors
    period = float(np.median(np.diff(given)))
    force = functools.partial(mean_force, given, command, period)
    delay = _delay(force, moved, reference, gaps)
    effort = force(time - delay)
    # The mean over a period attenuates fast changes slightly, which is corrected to second order.
    missing = smooth(time, effort, moved.cutoff, 2) * period**2 / 24.0
    return JointRecording(
        joint=AXES[axis],
        rotary=False,
        time=time - time[0],
        velocity=moved.velocity,
        effort=-(smooth(time, effort, moved.cutoff) - missing),
        source=source,
        acceleration=moved.acceleration,
        instrument=moved.instrument,
        position=position,
        reference=reference,
        cutoff=moved.cutoff,
        gaps=gaps if gaps.any() else None,
    )


def mean_force(given: Array, command: Array, period: float, time: Array) -> Array:
    """Return the mean (m,) of a held force over a period that begins at each `time`, (m,).

    Each command (n,) holds from its time `given`, (n,), until the next one, however late that is. The time between two
    ticks is longer where ticks were skipped, so that interpolation between commands would be wrong.
    """
    edges = np.concatenate(((given[0] - 1.0,), given, (given[-1] + 1.0,)))
    held = np.concatenate((command[:1], command))
    impulse = np.concatenate(((0.0,), np.cumsum(held * np.diff(edges))))
    return (np.interp(time + period, edges, impulse) - np.interp(time, edges, impulse)) / period


def _delay(command: Callable[[Array], Array], slow: signals.Motion, reference: Array, gaps: NDArray[np.bool_]) -> float:
    """Return the delay [s] at which mass, Coulomb and viscous friction and a constant explain the forces.

    `command` returns the force (n,) given at times (n,). The controller converts the noise of the position into forces,
    which biases least squares. Its result is the start of the search for the delay at which the residual forces are
    uncorrelated with the commanded motion and its jerk (instrumental variables).
    """
    time, cutoff = slow.time, slow.cutoff
    moving = (np.abs(slow.velocity) > _MOVING * np.abs(slow.velocity).max()) & ~gaps
    sides = slow.velocity > 0.0, slow.velocity < 0.0
    columns = np.column_stack((slow.acceleration, slow.velocity, *sides))[moving]

    def force(delay: float) -> Array:
        return np.asarray(smooth(time, command(time - delay), cutoff)[moving])

    basis, _ = np.linalg.qr(columns)
    delays = np.arange(0.0, _LATEST, _STEP)
    costs = [float(np.sum((one - basis @ (basis.T @ one)) ** 2)) for one in map(force, delays.tolist())]
    k = min(max(int(np.argmin(costs)), 1), len(delays) - 2)
    before, middle, after = costs[k - 1 : k + 2]
    bend = before - 2.0 * middle + after  # parabolic interpolation of the minimum
    between = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
    first = delay = float(delays[k] + _STEP * min(max(between, -1.0), 1.0))
    speed, rise = (smooth(time, reference, cutoff, order) for order in (1, 2))
    instruments = np.column_stack((rise, speed, *sides))[moving]
    jerk = smooth(time, rise, cutoff, 1)[moving]
    # make the jerk orthogonal to the columns
    jerk = jerk - instruments @ np.linalg.lstsq(columns.T @ instruments, columns.T @ jerk, rcond=None)[0]
    for _ in range(_STEPS):
        here, later = float(jerk @ force(delay)), float(jerk @ force(delay + _STEP))
        if here == later:
            return first
        delay -= _STEP * here / (later - here)
        if not 0.0 <= delay <= _LATEST:
            return first
    return delay
