"""What the virtual devices share: time, opening and closing, the hand, the log.

Time is the run's nominal time, so the same code runs in step with the wall's clock and as fast as the machine can. A
plant advances in whole substeps to the nominal time of the tick; after missed ticks it has simply further to go.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from devices.velocity import VelocitySettings, check_velocity, fill_velocity
from devices.virtual.hand import Hand, Workspace
from devices.virtual.hands import make_hand
from devices.virtual.log import CommandLog
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, DeviceSpec, State, Vector
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import bounded, build, check, free

_HELD = 0.5
"""A hand that grips firmer than this part of its strength presses the button in the handle, the dead-man's."""

MAX_SAMPLE_AGE = 7.5e-3
"""Samples older than this are stale [s]. It lies between two ticks of 1 ms: whether a sample that is a whole number of
ticks old is too old must not depend on how long a reading takes."""

_S = TypeVar("_S", bound="PlantSettings")


@dataclass(frozen=True)
class PlantSettings(VelocitySettings):
    """Settings that every virtual device has, besides those of the velocity estimator.

    Attributes
    ----------
    half_width, half_height : float
        Half the size of the workspace, whose centre is the origin [m].
    substep : float
        Step of the integration [s].
    period : float
        Period of a tick where there is no clock [s].
    seed : int
        Decides everything random.
    log : str
        File for the log of commands (`devices.virtual.log`); empty for none.
    """

    half_width: float = bounded(0.1, minimum=0.01, maximum=1.0, unit="m", doc="half the width of the workspace")
    half_height: float = bounded(0.08, minimum=0.01, maximum=1.0, unit="m", doc="half the height of the workspace")
    substep: float = bounded(1e-4, minimum=1e-6, maximum=1e-3, unit="s", doc="step of the integration")
    period: float = bounded(1e-3, minimum=1e-5, maximum=1.0, unit="s", doc="period of a tick without a clock")
    seed: int = bounded(0, minimum=0, maximum=2**62, doc="seed of everything random")
    log: str = free("", "a file", "where to log what was received and when")

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")
        if not isinstance(self.seed, int):
            raise ConfigurationError(f"device.seed = {self.seed!r}: must be a whole number of at least 0.")

    @property
    def workspace(self) -> Workspace:
        """The rectangle the handle may be in."""
        return Workspace((-self.half_width, -self.half_height), (self.half_width, self.half_height))


def split(cls: type[_S], settings: Mapping[str, Any] | None) -> tuple[_S, Hand]:
    """Return the validated settings of class `cls` and the hand, from a device's table and the table ``hand`` in it."""
    own = dict(settings or {})
    hand = own.pop("hand", None)
    built = build(cls, own, "device")
    return built, make_hand(hand, built.seed, built.workspace)


class VirtualDevice(ABC):
    """A plant behind the device contract. A subclass has its own settings, kernel and data sheet.

    Without a clock the first ``read`` gives the state at time zero and each further one advances by one period, as a
    clock that starts at tick 0 would have it.
    """

    advance: ClassVar[Callable[..., None]]
    """Kernel ``(record, steps, x, y, force_x, force_y, grip)``: integrate up to substep number `steps`, the hand being
    there then, and measure."""

    def __init__(self, settings: PlantSettings, hand: Hand, clock: Clock | None) -> None:
        self._settings = settings
        self._hand = hand
        self._own_clock = clock is None
        self._clock = clock or Clock(settings.period)
        self._substep = settings.substep
        self._log: CommandLog | None = None
        self._opened = False
        self._begin()

    @property
    @abstractmethod
    def spec(self) -> DeviceSpec:
        """The data sheet."""

    @abstractmethod
    def _new_record(self) -> NDArray[Any]:
        """Return the kernel's record, (1,), with all parameters, at time zero and at rest."""

    @abstractmethod
    def _safe_command(self) -> tuple[float, float]:
        """Return the command that leaves the device safe."""

    # --- the contract ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the plant at time zero; nothing happens if it is running.

        Raises
        ------
        DeviceOpenError
            If the log cannot be made.
        """
        if self._opened:
            return
        self._log = CommandLog(self._settings.log) if self._settings.log else None
        self._begin()
        self._warm_up()
        self._measure(0)
        self._opened = True

    def read(self) -> State:
        """Advance the plant to the present nominal time and return the sample; the arrays are reused."""
        if not self._opened:
            raise self._not_open()
        now = self._clock.time
        steps = self._steps_until(now)
        if steps > self._steps:
            self._measure(steps)
        self._state.time = now
        self._state.buttons = DEAD_MAN_BUTTON if self._grip[0] > _HELD else 0
        if self._own_clock:
            self._clock.tick += 1
        return self._state

    def write(self, command: Vector) -> None:
        """Take a command, (2,); it is in effect until the next one.

        Raises
        ------
        DeviceFault
            If it is not finite.
        """
        if not self._opened:
            raise self._not_open()
        x, y = float(command[0]), float(command[1])
        if not abs(x) + abs(y) < math.inf:
            raise DeviceFault(f"{self.spec.name} was given the command ({x:g}, {y:g}): it must be finite.")
        self._command[0] = x
        self._command[1] = y
        self._commanded[0] = self._steps
        if self._log is not None:
            self._log.append(self._state.time, x, y)

    def close(self) -> None:
        """Leave the device safe and stop the plant; nothing happens if it is not running."""
        if not self._opened:
            return
        self.write(np.array(self._safe_command()))
        self._opened = False
        self._log = None

    # --- for an observer ---------------------------------------------------------------------------------------------

    @property
    def handle(self) -> Vector:
        """Where the handle really is, (2,) [m]: no encoder between."""
        return np.array(self._record["handle"][0])

    @property
    def handle_velocity(self) -> Vector:
        """How fast the handle really moves, (2,) [m/s]."""
        return np.array(self._record["handle_velocity"][0])

    @property
    def hand_force(self) -> Vector:
        """What the hand really does to the handle, (2,) [N]."""
        return np.array(self._record["hand_force"][0])

    @property
    def hand(self) -> Hand:
        """The hand on the handle."""
        return self._hand

    @property
    def workspace(self) -> Workspace:
        """The rectangle the handle may be in."""
        return self._settings.workspace

    def __enter__(self) -> Self:
        """Open the device."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        self.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Put everything to time zero."""
        self._hand.restart()
        self._record = self._new_record()
        record = self._record
        self._command, self._commanded, self._grip = record["command"][0], record["commanded"], record["grip"]
        self._state = State(0.0, record["position"][0], record["velocity"][0], record["force"][0])
        self._state.hand_force = record["hand_force"][0]
        self._steps = 0
        if self._own_clock:
            self._clock.start()
        self._last_time = self._origin = self._clock.time

    def _common_fields(self, record: NDArray[Any], resolution: float) -> None:
        """Fill the fields of `PLANT_FIELDS`: the handle begins at rest where the hand begins; `resolution` in m."""
        settings, hand = self._settings, self._hand
        record["substep"] = settings.substep
        record["resolution"] = resolution
        fill_velocity(record, settings, resolution, self._clock.period)
        record["grip_stiffness"], record["grip_damping"] = hand.stiffness, hand.damping
        record["handle"] = record["target"] = record["position"] = hand.start

    def _warm_up(self) -> None:
        """Compile the kernel, on a copy, before anything depends on its speed."""
        type(self).advance(self._record.copy(), 1, 0.0, 0.0, 0.0, 0.0, 0.0)

    def _steps_until(self, now: float) -> int:
        """Return how many substeps the plant has done by the time `now` [s] of the clock."""
        if now < self._last_time:  # the clock was started afresh: the plant goes on from where it is
            self._origin = now - self._steps * self._substep
        self._last_time = now
        return round((now - self._origin) / self._substep)

    def _measure(self, steps: int) -> None:
        """Advance to substep number `steps` and take the sample there."""
        sample = self._hand.sample(steps * self._substep, self._state.position)
        type(self).advance(self._record, steps, *sample)
        self._steps = steps

    def _not_open(self) -> DeviceOpenError:
        return DeviceOpenError(f"{self.spec.name} is not open: call open() first.")
