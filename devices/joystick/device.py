"""A force-feedback stick on USB: any that speaks the class Physical Interface Device, once it has been calibrated."""

from __future__ import annotations

import atexit
import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, Self

from devices.compensation import Compensated, compensation_of
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.profiles import PROFILES
from devices.joystick.families import family_of
from devices.joystick.inputs import Sample
from devices.joystick.opening import playing, reach, require_parameters
from devices.joystick.parameters import build_parameters, read_parameters
from devices.joystick.settings import StickSettings
from devices.joystick.streaming import READ_TIMEOUT, Streaming
from devices.velocity import VelocityEstimator, velocity_lag
from devices.virtual.hands import Workspace, make_hand
from devices.virtual.log import CommandLog
from haptics.clock import Clock, WallClock
from haptics.device import DEAD_MAN_BUTTON, Causality, DeviceSpec, State, Vector
from haptics.errors import ConfigurationError, DeviceFault, DeviceOpenError
from haptics.settings import build

NAME = "pid-joystick"
_RATE_MIN, _RATE_MAX = 100.0, 1000.0
_MAX_SPEED = 2.0
_MAX_ACCELERATION = 100.0
_NOTHING_KNOWN = (_RATE_MIN, _RATE_MAX, (-0.05, -0.05), (0.05, 0.05), 100.0, 1e5, _MAX_SPEED, _MAX_ACCELERATION, 0.02)


class PidJoystick(Compensated):
    """A force-feedback stick, of the impedance kind: motion in the sample, force in the command.

    Building it touches no hardware. Without a parameter file it can be built, but not opened.

    Parameters
    ----------
    settings : mapping, optional
        Those of `StickSettings`, and for an emulated stick a table ``hand`` (`devices.virtual.hands.make_hand`).
    clock : Clock, optional
        The run's clock; without one the time since it was built counts.
    backend : usb.backend.IBackend, optional
        What to reach USB by, instead of libusb.

    Attributes
    ----------
    settings : StickSettings
        What was chosen.
    parameters : StickParameters or None
        What is known of the stick.
    backend : usb.backend.IBackend or None
        What USB is reached by, if not libusb; that of an emulated stick, once it was opened.

    Raises
    ------
    ConfigurationError
        On a wrong setting or a wrong parameter file.
    """

    def __init__(
        self, settings: Mapping[str, Any] | None = None, *, clock: Clock | None = None, backend: Any = None
    ) -> None:
        own = dict(settings or {})
        hand = own.pop("hand", None)
        self.settings = build(StickSettings, own, "device")
        self.backend = backend
        self.parameters = read_parameters(self.settings.parameters) if self.settings.parameters else None
        if self.settings.emulated:
            self._emulate(hand)
        elif hand is not None:
            raise ConfigurationError(
                "device.hand: only an emulated stick has a hand in software (device.emulated=true)."
            )
        self._check_serial()
        self._own_clock = clock is None
        self._clock = clock or WallClock(self.settings.period)
        self._streaming: Streaming | None = None
        self._log: CommandLog | None = None
        self._state = State()
        self._velocity = self._new_estimator()
        if self.parameters is not None:
            resolution = self.parameters.axes.resolution
            self._compensation = compensation_of(self.settings, NAME, self._identity, self._clock.period, resolution)
        self._last_time = -math.inf

    def _emulate(self, hand: Any) -> None:
        """Put an emulated stick in place of a plugged one, with parameters as a perfect calibration would find them."""
        own = self.settings
        if self.parameters is None:
            self.parameters = build_parameters(PROFILES[own.emulator].truths(own.serial or None))
        axes = self.parameters.axes
        make_hand(hand, own.seed, Workspace(axes.workspace_min_m, axes.workspace_max_m))  # complains in time
        self._hand = hand

    def _check_serial(self) -> None:
        serial, known = self.settings.serial, self.parameters.device.serial if self.parameters else ""
        if serial and known and serial != known:
            raise ConfigurationError(
                f"device.serial = {serial!r}: the parameters of device.parameters are those of the stick with serial "
                f"{known!r}. Each stick has a file of its own."
            )

    # --- the data sheet ----------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> str:
        assert self.parameters is not None
        return f"{'emulated ' * self.settings.emulated}{self.parameters.device}"

    @property
    def spec(self) -> DeviceSpec:
        """The data sheet; of a stick without parameters it is a placeholder, for it cannot be opened."""
        known = self.parameters
        if known is None:
            return DeviceSpec(NAME, Causality.IMPEDANCE, "not calibrated", *_NOTHING_KNOWN)
        identity, axes, force, handle = known.device, known.axes, known.force, known.handle
        damping, added = handle.damping_ns_per_m, self._compensation
        if added is not None and damping is not None:
            damping = added.left_of(damping)
        family = family_of(identity.vendor_id, identity.product_id)
        vector = 2.0 * family.out_interval(identity.out_interval_s)
        return DeviceSpec(
            name=NAME,
            causality=Causality.IMPEDANCE,
            identity=self._identity,
            rate_min=_RATE_MIN,
            rate_max=max(_RATE_MAX, 1.0 / identity.in_interval_s),
            workspace_min=axes.workspace_min_m,
            workspace_max=axes.workspace_max_m,
            max_force=force.max_force_n,
            max_force_rate=2.0 * force.max_force_n / vector,
            max_speed=_MAX_SPEED,
            max_acceleration=_MAX_ACCELERATION,
            max_sample_age=2.0 * (READ_TIMEOUT + identity.in_interval_s),
            dead_man="button" if handle.dead_man_button else "none",
            watchdog=self.settings.force_duration,
            position_resolution=axes.resolution,
            mass=handle.moving_mass_kg,
            damping=damping,
            delay=identity.in_interval_s + vector,
            velocity_lag=velocity_lag(self.settings, axes.resolution, self._clock.period),
            least_friction=added.least_friction if added else None,
        )

    # --- the contract ------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the stick, set it up and wait for its first position; nothing happens if it is open.

        Raises
        ------
        DeviceNotFoundError
            If it is not plugged in.
        DeviceOpenError
            If it could not be opened; says what to do.
        ConfigurationError
            If it has no parameters, or they are those of another stick.
        """
        if self._streaming is not None:
            return
        self._velocity.update(0.0, 0.0, 0.0)  # compiles before anything depends on its speed
        if self._compensation is not None:
            self._compensation.warm_up()
        own = self.settings
        if own.emulated and self.backend is None:  # whose time begins now
            self.backend = emulated_stick(
                own.emulator,
                hand=self._hand,
                seed=own.seed,
                serial=own.serial or None,
                faults=own.wire_faults,
                friction=own.friction,
            )
        with contextlib.ExitStack() as undo:
            transport = reach(own, self.parameters, self.backend)
            undo.callback(transport.close)
            known = require_parameters(self.parameters, transport.link, own.parameters)
            self._log = CommandLog(own.log) if own.log else None
            axes = known.axes.usage_x, known.axes.usage_y
            streaming = undo.enter_context(playing(transport, own.force_duration, own.keep_alive, axes))
            self._known, self._undo, self._streaming = known, undo.pop_all(), streaming
        self._velocity.reset()
        self._last_time = -math.inf
        atexit.register(self.close)

    def read(self) -> State:
        """Return the newest sample; its arrays are reused.

        Raises
        ------
        DeviceFault
            If the stick is gone or does not answer.
        """
        streaming = self._alive()
        sample, now = streaming.sample, self._now()
        assert sample is not None
        state = self._state
        x, y = self._metres(sample)
        if now < self._last_time:  # the clock was started afresh
            self._velocity.reset()
        self._last_time = now
        state.position[0], state.position[1] = x, y
        state.velocity[:] = self._velocity.update(now, x, y)
        state.buttons = self._buttons(sample)
        state.time = self._clock.elapsed() - (time.perf_counter() - streaming.heard)
        return state

    def write(self, command: Vector) -> None:
        """Take a force, (2,) [N]; it is sent as soon as the bus allows, unless a newer one comes first.

        The motors add what friction takes away, where that is known and allowed.

        Raises
        ------
        DeviceFault
            If it is not finite, or the stick is gone.
        """
        streaming = self._opened()
        x, y = float(command[0]), float(command[1])
        if not math.hypot(x, y) < math.inf:
            raise DeviceFault(f"{NAME} was given the command ({x:g}, {y:g}): it must be finite.")
        if self._log is not None:
            self._log.append(self._now(), x, y)
        if self._compensation is not None:
            x, y = self._compensation.added_to(command, self._state.velocity)
        norm = math.hypot(x, y)
        force = self._known.force
        scale = min(force.max_force_n / norm, 1.0) if norm > 0.0 else 0.0
        (a, b), (c, d) = force.newton_to_level
        streaming.command(scale * (a * x + b * y), scale * (c * x + d * y))
        self._alive()

    def close(self) -> None:
        """Take the force away, stop the effects and give the stick back, each even if the other fails."""
        if self._streaming is None:
            return
        self.compensate(0.0)
        if self._log is not None:
            self._log.append(self._now(), 0.0, 0.0)
        self._streaming, self._log = None, None
        atexit.unregister(self.close)
        self._undo.close()

    def __enter__(self) -> Self:
        """Open the device."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        self.close()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _new_estimator(self) -> VelocityEstimator:
        resolution = self.parameters.axes.resolution if self.parameters else 0.0
        return VelocityEstimator(resolution, self._clock.period, self.settings)

    def _opened(self) -> Streaming:
        if self._streaming is None:
            raise DeviceOpenError(f"{NAME} is not open: call open() first.")
        return self._streaming

    def _alive(self) -> Streaming:
        """Return the streams; raise what ended one of them."""
        streaming = self._opened()
        if streaming.fault is not None:
            raise DeviceFault(str(streaming.fault)) from streaming.fault
        return streaming

    def _now(self) -> float:
        """Return the nominal time of the tick; without a run, the time that has gone by [s]."""
        return self._clock.elapsed() if self._own_clock else self._clock.time

    def _metres(self, sample: Sample) -> tuple[float, float]:
        axes = self._known.axes
        (a, b), (c, d) = axes.counts_to_m
        x, y = sample.x - axes.centre_counts[0], sample.y - axes.centre_counts[1]
        return a * x + b * y, c * x + d * y

    def _buttons(self, sample: Sample) -> int:
        """Return the buttons: bit 0 is the dead-man's, bit n the device's own button n."""
        number = self._known.handle.dead_man_button
        held = DEAD_MAN_BUTTON if number and sample.buttons >> (number - 1) & 1 else 0
        return sample.buttons << 1 | held
