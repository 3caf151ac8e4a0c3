"""Virtual plants: their kernels for time, grip, encoder and stability, and the base class of their devices."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from devices.common.log import CommandLog, log_command
from devices.common.settings import RunSettings, SeedSettings, VelocitySettings, Workspace
from devices.common.velocity import VELOCITY, fill_velocity, prepare_velocity, update_velocity
from devices.virtual.hands.hand import CompiledHand, Hand
from devices.virtual.hands.records import HAND
from devices.virtual.hands.registry import make_hand
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, PORT_FIELDS, Channel, DeviceSpec, Managed, Port, State, Vector
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.jit import address_of_part, call_part, kernel, merged_kernel, record_at, run_part
from haptics.records import fields
from haptics.settings import bounded, build, documented

# --- kernels of plants ------------------------------------------------------------------------------------------------

HELD = 0.5
"""Fraction of the full grip above which the hand presses the dead-man's button in the handle."""

_OTHER_BUTTONS = 0xFFFFFFFF & ~DEAD_MAN_BUTTON  # all bits of a recording except the dead-man's button

PLANT_FIELDS: list[tuple[Any, ...]] = [
    *PORT_FIELDS,
    *fields("<i8", "hand hand_record log"),
    *fields("<f8", "substep mass grip_stiffness grip_damping resolution origin last_time"),
    *fields("<i8", "sampled steps commanded"),
    *fields("<f8", "handle handle_velocity acting target push", 2),
    ("grip", "<f8"),
    ("pressed", "<i8"),
    *fields("<f8", "next_target next_push", 2),
    ("next_grip", "<f8"),
    ("estimator", VELOCITY),
]
"""Fields of the record of every plant.

``hand`` is the address of the part of the hand, 0 for a hand in Python. ``hand_record`` is the address of its record,
which begins like `devices.virtual.hands.records.HAND`. ``log`` is the address of the command log, or 0. ``origin`` is
the time of substep 0, and ``last_time`` the newest time of a sample. ``steps`` counts completed substeps, ``sampled``
is their number at the last sample (-1 before the first), and ``commanded`` their number at the present command.
``handle`` is the true position, ``position`` the measured one. ``acting`` is the effective command of the device.
``pressed`` contains the buttons that the hand presses except the dead-man's button.
"""


@merged_kernel
def expect_hand(s: Any, x: float, y: float, push_x: float, push_y: float, grip: float) -> None:
    """Set the state of the hand at the end of the next integration interval."""
    s.next_target[0], s.next_target[1] = x, y
    s.next_push[0], s.next_push[1] = push_x, push_y
    s.next_grip = grip


@merged_kernel
def pull_handle(s: Any, part: float, rate: float) -> None:
    """Compute ``s.hand_force`` [N] at the fraction `part` of the interval; `rate` is its inverse length."""
    grip = s.grip + part * (s.next_grip - s.grip)
    for i in range(2):
        way = s.next_target[i] - s.target[i]
        stretch = s.target[i] + part * way - s.handle[i]
        spring = s.grip_stiffness * stretch + s.grip_damping * (rate * way - s.handle_velocity[i])
        s.hand_force[i] = grip * spring + s.push[i] + part * (s.next_push[i] - s.push[i])


@merged_kernel
def settle_hand(s: Any) -> None:
    """Set the state of the hand to the end of the interval."""
    for i in range(2):
        s.target[i] = s.next_target[i]
        s.push[i] = s.next_push[i]
    s.grip = s.next_grip


@merged_kernel
def estimate_velocity(s: Any) -> None:
    """Estimate the velocity from the measured position."""
    update_velocity(s.estimator, s.steps * s.substep, s.position[0], s.position[1])
    s.velocity[0], s.velocity[1] = s.estimator.velocity[0], s.estimator.velocity[1]


# --- port -----------------------------------------------------------------------------------------------------------


@merged_kernel
def steps_until(s: Any, now: float) -> Any:
    """Return the number of substeps of the plant until the time `now` [s] of the clock."""
    if now < s.last_time:  # the clock was restarted: the plant continues from its present state
        s.origin = now - s.steps * s.substep
    s.last_time = now
    return round((now - s.origin) / s.substep)


@functools.cache
def taking(advance: Callable[..., None]) -> Callable[..., None]:
    """Return the part that reads the sample of a plant.

    Parameters
    ----------
    advance : callable
        Kernel ``(record, steps)`` that integrates up to substep number `steps`, with the hand sampled at that time, and
        measures the sample.
    """

    @kernel
    def take(s: Any, now: float, _: float) -> None:
        steps = steps_until(s, now)
        if steps > s.sampled:
            hand = record_at(s.hand_record, HAND)
            if s.hand != 0:  # a hand in Python has been sampled before
                hand.handle[0], hand.handle[1] = s.position[0], s.position[1]
                call_part(s.hand, s.hand_record, steps * s.substep, 0.0)
            expect_hand(s, hand.target[0], hand.target[1], hand.force[0], hand.force[1], hand.grip)
            s.pressed = hand.buttons & _OTHER_BUTTONS
            advance(s, steps)
            settle_hand(s)
            s.sampled = steps
        s.time = now
        s.buttons = s.pressed | (DEAD_MAN_BUTTON if s.grip > HELD else 0)

    return take


@merged_kernel
def accept(s: Any, x: float, y: float) -> bool:
    """Record a command; return False if it is not finite."""
    if not abs(x) + abs(y) < math.inf:
        s.fault = 1
        return False
    s.command[0], s.command[1] = x, y
    s.commanded = s.steps
    s.commands += 1
    if s.log != 0:
        log_command(s.log, s.time, x, y)
    return True


@kernel
def steps_due(record: Any, now: float) -> int:
    """Return the number of substeps of the plant in the (1,) array `record` at the time `now` [s].

    It is -1 if the plant has already reached this number.
    """
    s = record[0]
    steps = steps_until(s, now)
    return steps if steps > s.sampled else -1


def require_stable(mass: float, stiffness: float, damping: float, substep: float) -> None:
    """Raise `ConfigurationError` if the integration of a plant would be unstable.

    A mass m on a spring K and a damper B, integrated semi-implicitly in steps of T, is stable if
    ``T^2 K/m + 2 T B/m < 4`` (Kikuuwe et al. 2006, (63)). The limit here is half of that, which also avoids ringing.

    Parameters
    ----------
    mass, stiffness, damping, substep : float
        m [kg], the sums of all simultaneous K [N/m] and B [N s/m], and T [s].

    Raises
    ------
    ConfigurationError
        With the remedy.
    """
    measure = (substep**2 * stiffness + 2.0 * substep * damping) / mass
    if not measure < 2.0:
        raise ConfigurationError(
            f"device.mass = {mass:g} kg is too light to be computed in steps of device.substep = {substep:g} s with a "
            f"stiffness of {stiffness:.4g} N/m and a damping of {damping:.4g} N s/m on it: choose a larger mass, a "
            "softer hand (hand.stiffness, hand.damping) or a smaller substep."
        )


# --- devices ----------------------------------------------------------------------------------------------------------

Part = Callable[..., None]
"""Kernel that is a part (`haptics.jit`)."""

MAX_SAMPLE_AGE = 7.5e-3
"""Age above which samples are stale [s].

It is between two ticks of 1 ms, so that the decision for samples with an age of whole ticks does not depend on the
duration of a read.
"""

_S = TypeVar("_S", bound="PlantSettings")


@documented
@dataclass(frozen=True)
class PlantSettings(SeedSettings, RunSettings, VelocitySettings, section="device"):
    """Settings of every virtual device, in addition to run, seed and velocity settings."""

    half_width: float = bounded(0.1, minimum=0.01, maximum=1.0, unit="m", doc="half of the width of the workspace")
    half_height: float = bounded(0.08, minimum=0.01, maximum=1.0, unit="m", doc="half of the height of the workspace")
    substep: float = bounded(1e-4, minimum=1e-6, maximum=1e-3, unit="s", doc="step of the integration")

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
    """Simulated plant with the device interface. Subclasses define settings, record, parts and data sheet.

    A plant consists of a record and two parts: one reads the sample, the other processes a command. They form the port
    of the device (`haptics.device`). ``read`` and ``write`` call the same parts. The plant advances in whole substeps
    to the nominal time of the tick, so that the same code runs in real time and as fast as possible. After missed ticks
    it advances by more substeps. Without a clock the first ``read`` returns the state at time zero, and each further
    one advances by one period, like a clock that starts at tick 0.

    Attributes
    ----------
    hand : Hand
        The hand on the handle.
    workspace : Workspace
        Workspace of the handle.
    """

    channels: ClassVar[tuple[Channel, ...]] = ()
    """Additional measured quantities."""

    def __init__(self, settings: PlantSettings, hand: Hand, clock: Clock | None) -> None:
        self._settings = settings
        self.hand, self.workspace = hand, settings.workspace
        self._own_clock = clock is None
        self._clock = clock or Clock(settings.period)
        self._hand_sample = np.zeros(1, HAND)
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

    @abstractmethod
    def _parts(self) -> tuple[Part, Part]:
        """Return the parts that read the sample (`taking`) and process a command."""

    def _safe_command(self) -> tuple[float, float]:
        """Return a safe command for the device: no force."""
        return 0.0, 0.0

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
        self._require_open()
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
        self._require_open()
        x, y, fault = float(command[0]), float(command[1]), self._record["fault"]
        fault[0] = 0
        self._give(x, y)
        if fault[0]:
            raise DeviceFault(f"{self.spec.name} was given the command ({x:g}, {y:g}): it must be finite.")

    def close(self) -> None:
        """Write a safe command and stop the plant; no effect if it is not running."""
        if not self._opened:
            return
        self._record["assistance"] = 0.0
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
        self._require_open()
        return Port(self._record, *self._addresses) if isinstance(self.hand, CompiledHand) else None

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

    # --- internal ---------------------------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if not self._opened:
            raise DeviceOpenError(f"{self.spec.name} is not open: call open() first.")

    def _begin(self) -> None:
        """Reset hand, record and clock to time zero."""
        self.hand.restart()
        self._record = record = self._new_record()
        self._state = State(0.0, record["position"][0], record["velocity"][0], record["force"][0])
        self._state.hand_force = record["hand_force"][0]
        if self.channels:
            self._state.channels = record["channels"][0, : sum(size for _, _, size in self.channels)]
        if self._own_clock:
            self._clock.start()
        record["last_time"] = record["origin"] = self._clock.time
        record["sampled"] = -1

    def _common_fields(self, record: NDArray[Any], resolution: float) -> None:
        """Fill the fields of `PLANT_FIELDS`: the handle rests at the start of the hand; `resolution` in m."""
        settings, hand = self._settings, self.hand
        record["substep"] = settings.substep
        record["resolution"] = resolution
        fill_velocity(record["estimator"], settings, resolution, self._clock.period)
        record["grip_stiffness"], record["grip_damping"] = hand.stiffness, hand.damping
        record["hand_record"] = hand.place if isinstance(hand, CompiledHand) else self._hand_sample.ctypes.data
        record["handle"] = record["target"] = record["position"] = hand.start

    def _prepare(self) -> None:
        """Compile the parts before they are needed in real time."""
        record = self._record
        prepare_velocity(record["estimator"])
        if isinstance(self.hand, CompiledHand):
            record["hand"] = self.hand.address
        take, give = (address_of_part(part, record.dtype) for part in self._parts())
        self._addresses = take, give
        self._take, self._give = (functools.partial(run_part, part, record.ctypes.data) for part in (take, give))

    def _take_sample(self) -> None:
        """Update the sample to the present nominal time, after sampling a hand in Python for that time."""
        now, state, sample = self._clock.time, self._state, self._hand_sample
        if not isinstance(self.hand, CompiledHand) and (steps := steps_due(self._record, now)) >= 0:
            x, y, force_x, force_y, grip, buttons = self.hand.sample(steps * self._settings.substep, state.position)
            sample["target"], sample["force"], sample["grip"] = (x, y), (force_x, force_y), grip
            sample["buttons"] = buttons
        self._take(now, 0.0)
        state.time, state.buttons = now, int(self._record["buttons"][0])
