"""Friction of a free handle: motion by the motors of an impedance device, and recordings of each axis.

A position controller follows the reference of `calibration.motions.excitation`, and its forces move the handle against
its friction. Every round is a separate motion (`haptics.rendering.programs`), bounded by the safety envelope and
identified in the recording by its label.

A force acts later than it is commanded, and is held for a period. The delay is estimated from the recording: it is the
delay for which mass and friction explain the forces best.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.data import signals
from calibration.data.joint_recording import JointRecording, Source
from calibration.data.signals import best_cutoff, smooth
from calibration.motions.driving import Measurement, require_forces
from calibration.motions.excitation import go_to, hold_still, plan
from calibration.motions.procedure import Mover, Procedure, complete_rounds, rows_of, source_of
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.rendering.envelope import UNUSABLE
from haptics.rendering.programs import Motion, reference

AXES = ("x", "y")

_QUICKNESS = 0.25
"""Product of the controller's natural frequency and its delay, far below the stability limit."""

_DAMPING_RATIO, _MEMORY = 0.7, 0.1
"""Damping ratio of the controller, and relative speed of its integrator."""

_STRENGTH = 0.8
"""Maximum fraction of the device's force that is used."""

_ASTRAY = 0.02
"""Maximum following error [m]."""

_RACING = 0.3
"""Margin of the speed limit above the fastest stroke [m/s]."""

_UNKNOWN_MASS, _UNKNOWN_DELAY = 0.3, 2e-3


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
            bound=_STRENGTH * spec.max_force,
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

Array = NDArray[np.float64]

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
    return {axis: [_round(rows, k, source) for rows in whole[k]] for k, axis in enumerate(AXES)}


def is_excitation(recording: Recording) -> bool:
    """Return True if the recording contains an excitation and not a session."""
    return PARTS in recording.metadata or any(label.startswith(AXES) for label, _ in rows_of(recording))


def _round(rows: Rows, axis: int, source: Source) -> JointRecording:
    sampled = rows["time"] + rows["period_error"] - rows["sample_age"]
    good = (rows["status"] & UNUSABLE) == 0
    new = good & (np.diff(np.maximum.accumulate(np.where(good, sampled, -np.inf)), prepend=-np.inf) > _SAME)
    time, position = sampled[new], np.array(rows["position"][new, axis])
    reference = np.array(rows["proxy"][new, axis])
    moved = signals.motion(time, position, min(_LOOK, best_cutoff(time, position)))
    given = rows["time"] + rows["period_error"]
    command = np.array(rows["command"][:, axis])
    delay = _delay(given, command, moved, reference)
    # A force is held for a period. Linear interpolation between the commands is its mean over a period, which
    # attenuates fast changes slightly. The attenuation is corrected to second order.
    force = np.interp(moved.time, given + delay, command)
    missing = smooth(moved.time, force, moved.cutoff, 2) * float(np.median(np.diff(given))) ** 2 / 24.0
    return JointRecording(
        joint=AXES[axis],
        rotary=False,
        time=time - time[0],
        velocity=moved.velocity,
        effort=-(smooth(moved.time, force, moved.cutoff) - missing),
        source=source,
        acceleration=moved.acceleration,
        instrument=moved.instrument,
        position=position,
        reference=reference,
        cutoff=moved.cutoff,
    )


def _delay(given: Array, command: Array, slow: signals.Motion, reference: Array) -> float:
    """Return the delay [s] at which mass, Coulomb and viscous friction and a constant explain the forces.

    The controller converts the noise of the position into forces, which biases least squares. Its result is the start
    of the search for the delay at which the residual forces are uncorrelated with the commanded motion and its jerk
    (instrumental variables).
    """
    time, cutoff = slow.time, slow.cutoff
    moving = np.abs(slow.velocity) > _MOVING * np.abs(slow.velocity).max()
    sides = slow.velocity > 0.0, slow.velocity < 0.0
    columns = np.column_stack((slow.acceleration, slow.velocity, *sides))[moving]
    speed, rise = (smooth(time, reference, cutoff, order) for order in (1, 2))
    instruments = np.column_stack((rise, speed, *sides))[moving]
    jerk = smooth(time, rise, cutoff, 1)[moving]
    # make the jerk orthogonal to the columns
    jerk = jerk - instruments @ np.linalg.lstsq(columns.T @ instruments, columns.T @ jerk, rcond=None)[0]

    def left(delay: float) -> float:
        return float(jerk @ smooth(time, np.interp(time, given + delay, command), cutoff)[moving])

    first = delay = _least_squares_delay(given, command, slow)
    for _ in range(_STEPS):
        here, later = left(delay), left(delay + _STEP)
        if here == later:
            return first
        delay -= _STEP * here / (later - here)
        if not 0.0 <= delay <= _LATEST:
            return first
    return delay


def _least_squares_delay(given: Array, command: Array, slow: signals.Motion) -> float:
    """Return the delay [s] that minimises the residual of the forces."""
    time, velocity = slow.time, slow.velocity
    moving = np.abs(velocity) > _MOVING * np.abs(velocity).max()
    columns = np.column_stack((slow.acceleration, velocity, velocity > 0.0, velocity < 0.0))[moving]
    basis, _ = np.linalg.qr(columns)
    delays = np.arange(0.0, _LATEST, _STEP)

    def left(delay: float) -> float:
        force = smooth(time, np.interp(time, given + delay, command), slow.cutoff)[moving]
        return float(np.sum((force - basis @ (basis.T @ force)) ** 2))

    costs = [left(float(delay)) for delay in delays]
    k = min(max(int(np.argmin(costs)), 1), len(delays) - 2)
    before, here, after = costs[k - 1 : k + 2]
    bend = before - 2.0 * here + after  # parabolic interpolation of the minimum
    between = 0.5 * (before - after) / bend if bend > 0.0 else 0.0
    return float(delays[k] + _STEP * min(max(between, -1.0), 1.0))
