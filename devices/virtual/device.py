"""Base class of the virtual devices: time, opening and closing, the hand, the port, the log.

The devices use the nominal time of the run, so that the same code runs in real time and as fast as possible. A plant
advances in whole substeps to the nominal time of the tick. After missed ticks it advances by more substeps.

A plant consists of a record and two parts: one reads the sample, the other processes a command. They form the port of
the device (`haptics.ports`). ``read`` and ``write`` call the same parts.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from devices.common.driver import Managed
from devices.common.log import CommandLog
from devices.common.settings import RunSettings, SeedSettings, VelocitySettings, Workspace, check_velocity
from devices.common.velocity import fill_velocity, prepare_velocity
from devices.virtual.hands.hand import HAND, CompiledHand, Hand
from devices.virtual.hands.registry import make_hand
from devices.virtual.plant import steps_due
from haptics.clock import Clock
from haptics.device import DeviceSpec, State, Vector
from haptics.errors import DeviceFault, DeviceOpenError
from haptics.parts import address_of_part, run_part
from haptics.ports import Port
from haptics.settings import bounded, build, check, documented

Part = Callable[..., None]
"""Kernel that is a part (`haptics.parts`)."""

MAX_SAMPLE_AGE = 7.5e-3
"""Age above which samples are stale [s].

It is between two ticks of 1 ms, so that the decision for samples with an age of whole ticks does not depend on the
duration of a read.
"""

_S = TypeVar("_S", bound="PlantSettings")


@documented
@dataclass(frozen=True)
class PlantSettings(SeedSettings, RunSettings, VelocitySettings):
    """Settings of every virtual device, in addition to run, seed and velocity settings."""

    half_width: float = bounded(0.1, minimum=0.01, maximum=1.0, unit="m", doc="half the width of the workspace")
    half_height: float = bounded(0.08, minimum=0.01, maximum=1.0, unit="m", doc="half the height of the workspace")
    substep: float = bounded(1e-4, minimum=1e-6, maximum=1e-3, unit="s", doc="step of the integration")

    def __post_init__(self) -> None:
        check(self, "device")
        check_velocity(self, "device.")

    @property
    def workspace(self) -> Workspace:
        """Workspace of the handle."""
        return Workspace((-self.half_width, -self.half_height), (self.half_width, self.half_height))


def split(cls: type[_S], settings: Mapping[str, Any] | None) -> tuple[_S, Hand]:
    """Return the validated settings of class `cls`, and the hand, from the table of a device."""
    own = dict(settings or {})
    hand = own.pop("hand", None)
    built = build(cls, own, "device")
    return built, make_hand(hand, built.seed, built.workspace)


class VirtualDevice(Managed):
    """Simulated plant with the device interface. Subclasses define settings, parts and data sheet.

    Without a clock the first ``read`` returns the state at time zero, and each further one advances by one period, like
    a clock that starts at tick 0.
    """

    def __init__(self, settings: PlantSettings, hand: Hand, clock: Clock | None) -> None:
        self._settings = settings
        self._hand = hand
        self._own_clock = clock is None
        self._clock = clock or Clock(settings.period)
        self._asked = np.zeros(1, HAND)
        self._log: CommandLog | None = None
        self._opened = False
        self._begin()

    @property
    @abstractmethod
    def spec(self) -> DeviceSpec:
        """Data sheet of the device."""

    @abstractmethod
    def _new_record(self) -> NDArray[Any]:
        """Return the kernel record, (1,), with all parameters, at time zero and at rest."""

    @property
    @abstractmethod
    def _take_part(self) -> Part:
        """Part that reads the sample (`devices.virtual.plant.taking`)."""

    @property
    @abstractmethod
    def _give_part(self) -> Part:
        """Part that processes a command."""

    @abstractmethod
    def _safe_command(self) -> tuple[float, float]:
        """Return a safe command for the device."""

    # --- device interface -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Start the plant at time zero; no effect if it is running.

        Raises
        ------
        DeviceOpenError
            If the log file cannot be created.
        """
        if self._opened:
            return
        self._log = CommandLog(self._settings.log) if self._settings.log else None
        self._begin()
        if self._log is not None:
            self._record["log"] = self._log.address
        self._prepare()
        self._take_sample()
        self._opened = True

    def read(self) -> State:
        """Advance the plant to the present nominal time and return the sample; its arrays are reused."""
        if not self._opened:
            raise self._not_open()
        self._take_sample()
        if self._own_clock:
            self._clock.tick += 1
        return self._state

    def write(self, command: Vector) -> None:
        """Set the command, (2,), which is in effect until the next one.

        Raises
        ------
        DeviceFault
            If it is not finite.
        """
        if not self._opened:
            raise self._not_open()
        x, y = float(command[0]), float(command[1])
        self._fault[0] = 0
        self._give(x, y)
        if self._fault[0]:
            raise DeviceFault(f"{self.spec.name} was given the command ({x:g}, {y:g}): it must be finite.")

    def close(self) -> None:
        """Write a safe command and stop the plant; no effect if it is not running."""
        if not self._opened:
            return
        self.write(np.array(self._safe_command()))
        self._opened = False
        self._record["log"] = 0
        self._log = None

    def port(self) -> Port | None:
        """Return the port of the device; None with a hand in Python.

        Raises
        ------
        DeviceOpenError
            If the device is not open.
        """
        if not self._opened:
            raise self._not_open()
        if not isinstance(self._hand, CompiledHand):
            return None
        dtype = self._record.dtype
        return Port(self._record, address_of_part(self._take_part, dtype), address_of_part(self._give_part, dtype))

    # --- true state, for tests and displays -------------------------------------------------------------------------

    @property
    def handle(self) -> Vector:
        """True position of the handle, (2,) [m], without the encoder."""
        return np.array(self._record["handle"][0])

    @property
    def handle_velocity(self) -> Vector:
        """True velocity of the handle, (2,) [m/s]."""
        return np.array(self._record["handle_velocity"][0])

    @property
    def hand_force(self) -> Vector:
        """True force of the hand on the handle, (2,) [N]."""
        return np.array(self._record["hand_force"][0])

    @property
    def hand(self) -> Hand:
        """The hand on the handle."""
        return self._hand

    @property
    def workspace(self) -> Workspace:
        """Workspace of the handle."""
        return self._settings.workspace

    # --- internal ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Reset hand, record and clock to time zero."""
        self._hand.restart()
        self._record = self._new_record()
        record = self._record
        self._buttons, self._fault = record["buttons"], record["fault"]
        self._state = State(0.0, record["position"][0], record["velocity"][0], record["force"][0])
        self._state.hand_force = record["hand_force"][0]
        if self._own_clock:
            self._clock.start()
        record["last_time"] = record["origin"] = self._clock.time
        record["sampled"] = -1

    def _common_fields(self, record: NDArray[Any], resolution: float) -> None:
        """Fill the fields of `PLANT_FIELDS`: the handle rests at the start of the hand; `resolution` in m."""
        settings, hand = self._settings, self._hand
        record["substep"] = settings.substep
        record["resolution"] = resolution
        fill_velocity(record["estimator"], settings, resolution, self._clock.period)
        record["grip_stiffness"], record["grip_damping"] = hand.stiffness, hand.damping
        record["hand_record"] = hand.place if isinstance(hand, CompiledHand) else self._asked.ctypes.data
        record["handle"] = record["target"] = record["position"] = hand.start

    def _prepare(self) -> None:
        """Compile the parts before they are needed in real time."""
        record = self._record
        prepare_velocity(record["estimator"])
        if isinstance(self._hand, CompiledHand):
            record["hand"] = self._hand.address
        place, dtype = record.ctypes.data, record.dtype
        self._take = functools.partial(run_part, address_of_part(self._take_part, dtype), place)
        self._give = functools.partial(run_part, address_of_part(self._give_part, dtype), place)

    def _take_sample(self) -> None:
        """Update the sample to the present nominal time."""
        now = self._clock.time
        if not isinstance(self._hand, CompiledHand):
            self._ask_hand(now)
        self._take(now, 0.0)
        self._state.time = now
        self._state.buttons = int(self._buttons[0])

    def _ask_hand(self, now: float) -> None:
        """Sample a hand in Python for the time `now` [s] if the plant has not reached it yet."""
        steps = steps_due(self._record, now)
        if steps >= 0:
            sample = self._hand.sample(steps * self._settings.substep, self._state.position)
            x, y, force_x, force_y, grip, buttons = sample
            self._asked["target"], self._asked["force"], self._asked["grip"] = (x, y), (force_x, force_y), grip
            self._asked["buttons"] = buttons

    def _not_open(self) -> DeviceOpenError:
        return DeviceOpenError(f"{self.spec.name} is not open: call open() first.")
