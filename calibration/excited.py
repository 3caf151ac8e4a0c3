"""Moving the handle of an impedance device by its own motors, and recording it.

Nobody holds the handle: a position controller follows the reference of `calibration.excitation`, and its forces are
what moves the handle against its friction. Every tick is recorded (a recording of ours), so that nothing is lost
however it ends. There is no force afterwards, in whatever way.
"""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.excitation import Excitation, approach, plan
from haptics.clock import Clock
from haptics.device import Causality, Device, DeviceSpec, State
from haptics.errors import ConfigurationError, DeviceFault
from haptics.recording import Recorder
from haptics.shared import SharedFile
from haptics.trace import Reader, Trace

Array = NDArray[np.float64]

PARTS = "excited_ticks"
"""Key of ``recording.json``: for x and y the ticks of their rounds, from the first to the one after the last."""

_QUICKNESS = 0.25
"""Natural frequency of the controller times its delay: far from where the delay would make it swing."""

_DAMPING_RATIO, _MEMORY = 0.7, 0.1
"""Of the controller: damping relative to critical, and how slow its integrator is."""

_STRENGTH = 0.8
"""Part of the device's force that is used at most."""

_ASTRAY = 0.02
"""A handle farther from where it should be does not follow [m]."""

_RACING, _RACING_FOR = 0.3, 0.02
"""A handle that is so much faster than any stroke [m/s] for so long [s] runs away; a late sample looks like one."""

_LOST = 0.1
"""A device of which nothing new was heard for so long has failed [s]."""

_DRAIN = 100
"""Ticks after which they are written to the disk."""

_UNKNOWN_MASS, _UNKNOWN_DELAY = 0.3, 2e-3


@dataclass(frozen=True)
class Gains:
    """A position controller for a mass, with as much stiffness as its delay allows.

    Attributes
    ----------
    stiffness, damping, memory : float
        Force per error [N/m], per error of the velocity [N s/m], and rate at which an error adds up [N/(m s)].
    """

    stiffness: float
    damping: float
    memory: float

    @classmethod
    def of(cls, spec: DeviceSpec, period: float) -> Gains:
        """Return the gains for a device that is looked at once per `period` [s]."""
        mass = spec.mass or _UNKNOWN_MASS
        delay = (_UNKNOWN_DELAY if spec.delay is None else spec.delay) + period
        pulsation = _QUICKNESS / delay
        stiffness = mass * pulsation**2
        return cls(stiffness, 2.0 * _DAMPING_RATIO * mass * pulsation, _MEMORY * pulsation * stiffness)


def excite(
    device: Device,
    excitation: Excitation,
    folder: Path,
    clock: Clock,
    progress: Callable[[float], None] = lambda share: None,
) -> Path:
    """Move the handle of a device and record it.

    Parameters
    ----------
    device : Device
        Of the impedance kind, not yet open, nobody's hand on it.
    excitation : Excitation
        The motions.
    folder : Path
        The recording, which does not exist yet.
    clock : Clock
        The device's clock.
    progress : callable
        Gets the share that is done, ten times a second.

    Returns
    -------
    Path
        The recording.

    Raises
    ------
    ConfigurationError
        If the device takes no forces, or cannot do the motions.
    DeviceNotFoundError, DeviceOpenError
        If it cannot be opened.
    DeviceFault
        If it fails, or the handle does not follow or runs away. What was recorded stays.
    """
    spec = device.spec
    _require_free(spec)
    motion = plan(excitation, spec, clock.period)
    facts = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "device": asdict(spec),
        "model": "excitation",
        "rate_hz": 1.0 / clock.period,
        "configuration": {"excitation": asdict(excitation)},
    }
    with contextlib.ExitStack() as undo:
        undo.callback(device.close)
        device.open()
        ways = approach(np.array(device.read().position), motion.position[0], clock.period)
        count = len(ways[0])
        facts[PARTS] = [[[count + one.start, count + one.stop] for one in rounds] for rounds in motion.parts]
        recorder = undo.enter_context(_recorded(folder, facts))
        reference = np.concatenate((ways[0], motion.position)), np.concatenate((ways[1], motion.velocity))
        _Run(device, clock, excitation, recorder).follow(*reference, progress)
    return folder


@contextlib.contextmanager
def _recorded(folder: Path, facts: dict[str, Any]) -> Iterator[Recorder]:
    """Give a recording that is closed in order, or as interrupted."""
    recorder, reason = Recorder(folder, facts), "interrupted"
    try:
        yield recorder
        reason = "completed"
    finally:
        recorder.drain()
        recorder.close({"reason": reason}, complete=reason == "completed")


def _require_free(spec: DeviceSpec) -> None:
    if spec.causality is not Causality.IMPEDANCE:
        raise ConfigurationError(
            f"{spec.name} takes positions: its motors' forces are not to be had here; record its joints and give the "
            "file with --data."
        )
    if spec.dead_man != "none":
        raise ConfigurationError(
            f"{spec.name} gives force only while a {spec.dead_man} is held, and nobody may hold the handle meanwhile."
        )


class _Run:
    """One excitation of an open device."""

    def __init__(self, device: Device, clock: Clock, excitation: Excitation, recorder: Recorder) -> None:
        self._device, self._clock, self._spec = device, clock, device.spec
        self._gains = Gains.of(self._spec, clock.period)
        self._fastest = excitation.fastest + _RACING
        self._shared = SharedFile("trace")
        self._trace = Trace.create(self._shared.path)
        self._recorder = recorder
        recorder.follow(Reader(self._trace))
        self._sum, self._steady = np.zeros(2), 0.0

    def follow(self, position: Array, velocity: Array, progress: Callable[[float], None]) -> None:
        """Follow a reference, (n, 2), to its end; then the handle is let go."""
        clock, tick, count = self._clock, 0, len(position)
        clock.start()
        self._trace.origin[:] = clock.origin_ns
        self._sum[:] = 0.0
        try:
            while tick < count:
                late = clock.wait(tick)
                if late >= clock.period:
                    tick = min(tick + int(late / clock.period), count - 1)
                    clock.tick = tick
                self._tick(tick, late, position[tick], velocity[tick])
                if tick % _DRAIN == 0:
                    self._recorder.drain()
                    progress(tick / count)
                tick += 1
            self._device.write(np.zeros(2))
        finally:
            self._shared.close()

    def _tick(self, tick: int, late: float, place: Array, speed: Array) -> None:
        state = self._device.read()
        age = max(self._clock.elapsed() - state.time, 0.0)
        self._judge(tick, state, age, place)
        command = self._force(state, place, speed) if age <= self._spec.max_sample_age else np.zeros(2)
        self._device.write(command)
        slot = self._trace.slots[self._trace.count % self._trace.capacity]
        slot["tick"], slot["time"], slot["period_error"], slot["sample_age"] = tick, self._clock.time, late, age
        slot["position"], slot["velocity"], slot["force"] = state.position, state.velocity, state.force
        slot["command"] = slot["command_unlimited"] = command
        slot["proxy"], slot["displacement"] = place, state.position - place
        self._trace.publish(self._trace.count + 1)

    def _judge(self, tick: int, state: State, age: float, place: Array) -> None:
        """Raise `DeviceFault` where the handle does not do what it should."""
        if age > _LOST:
            raise DeviceFault(f"{self._spec.name} failed at tick {tick}: nothing was heard of it for {_LOST:g} s.")
        now, away, speed = self._clock.time, math.hypot(*(state.position - place)), math.hypot(*state.velocity)
        self._steady = now if speed <= self._fastest else self._steady
        if not away <= _ASTRAY:
            raise DeviceFault(
                f"{self._spec.name}: the handle is {1e3 * away:.0f} mm from where it should be at tick {tick}; let "
                "go of it, see that nothing is in its way, or choose slower motions."
            )
        if now - self._steady > _RACING_FOR:
            raise DeviceFault(
                f"{self._spec.name}: the handle runs at {speed:.2f} m/s at tick {tick}; the data sheet may be wrong "
                "(calibrate the device first), or somebody moves it."
            )

    def _force(self, state: State, place: Array, speed: Array) -> Array:
        """Return the force, (2,) [N], cut to what is allowed; what is cut does not add up."""
        gains, limit = self._gains, _STRENGTH * self._spec.max_force
        error = place - state.position
        wanted = gains.stiffness * error + gains.damping * (speed - state.velocity) + self._sum
        norm = math.hypot(*wanted)
        if norm > limit:
            return np.asarray(wanted * (limit / norm))
        self._sum += gains.memory * self._clock.period * error
        return np.asarray(wanted)
