r"""Motor stage of two motors on a CAN bus: ODrives with firmware 0.5, Pro or S1 (0.6 and later), with CAN Simple.

The frames that drive the motors are identical. Drives of the new generation reply to a version request; firmware 0.5
does not.

======================  =======================================  ====================================================
\                       0.5                                      Pro, S1
======================  =======================================  ====================================================
version (0x00)          not answered                             eight numbers of one byte
heartbeat (0x01)        error bits of the axis, state, flags     active errors, state, result of a procedure
errors (0x03)           of the motor; encoder 0x04, controller   active errors, and errors for which the motor
                        0x1D                                     was disarmed
rates                   ``config.can.encoder_rate_ms``           ``config.can.encoder_msg_rate_ms``
======================  =======================================  ====================================================
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from devices.arm.motors import can_bus as bus
from devices.arm.motors import stage
from devices.arm.motors.can_bus import BIT_RATE, CanLine, Heartbeat, message, signals
from devices.arm.motors.errors import NEW_ERRORS, NEW_WATCHDOG_EXPIRED, WATCHDOG_EXPIRED, explain, in_words
from devices.arm.motors.settings import WHERE
from devices.arm.motors.stage import AXES, Answer, Command, MotorStage, Rounds
from devices.common.bus import TransferError, Trouble
from haptics.device import Vector
from haptics.errors import DeviceFault, DeviceOpenError

_LISTEN = 0.3  # time for which cyclic messages are counted [s]: three heartbeats of a drive with default settings

_ESTIMATE_RATE = 750.0  # minimum rate of positions and speeds [Hz]; a drive must send them every millisecond

_HEARTBEAT_RATE = 50.0  # minimum rate of heartbeats [Hz], from which a disarmed axis is detected

REPEAT = 2e-3
"""Time after which a command is repeated if no new one arrives [s], which feeds the watchdogs. It is longer than the
period of a tick at 1 kHz: otherwise, messages received during a late tick would resend the old command just before the
new one.
"""

_HEARTBEAT_AGE = 0.2  # maximum age of the heartbeat of a live axis [s]; other messages do not prove that it is alive

_FASTEST = 100.0  # maximum plausible speed of a motor if the requirements of the arm are unknown [turn/s]

_RESERVE = 2.0  # maximum plausible speed of a motor as a multiple of the speed that the arm requires

_STATE_TIMEOUT = 1.0
_IDLE_TIMEOUT = 0.3  # time after which a motor that is still armed gets an emergency stop [s]: some heartbeats

_POLL = 2e-3
_WATCHDOG_DELAY = 0.05  # maximum delay until a heartbeat shows an expired watchdog [s]


@dataclass(frozen=True)
class Generation:
    """Firmware generation of a drive.

    Attributes
    ----------
    firmware : str
        Firmware version, as far as the drive reports it.
    new : bool
        Whether it is a Pro or S1.
    watchdog : int
        Error bit of an expired watchdog.
    rate_settings : (str, str)
        Settings of an axis for the periods of estimates and heartbeats [ms].
    axes : (str, str)
        Names of the first and the second axis in odrivetool.
    """

    firmware: str = "0.5"
    new: bool = False
    watchdog: int = WATCHDOG_EXPIRED
    rate_settings: tuple[str, str] = ("encoder_rate_ms", "heartbeat_rate_ms")
    axes: tuple[str, str] = ("odrv0.axis0", "odrv0.axis1")


def _generation_of(line: CanLine) -> Generation:
    """Return the firmware generation of the drive; firmware 0.5 does not answer the version request."""
    try:
        version = line.request(line.nodes[0], bus.VERSION, attempts=1)
    except TransferError:
        line.raise_fault()
        return Generation()
    if len(version) < 8:
        return Generation()
    rates = "encoder_msg_rate_ms", "heartbeat_msg_rate_ms"
    firmware = ".".join(map(str, version[4:7]))
    return Generation(firmware, True, NEW_WATCHDOG_EXPIRED, rates, ("odrv0.axis0", "odrv1.axis0"))


class CanStage(MotorStage, Rounds):
    """Two axes in position control that get position and speed in every tick.

    See `MotorStage`; its `far_end` is a function that opens the port for frames instead of the interface of the
    settings.

    The arm's zero is stored here and not in the drive, because positions on the bus count from the encoders' start. The
    stage must therefore be homed whenever it was opened. The first time that the motors are armed, they are armed once
    before that to verify that the drive's watchdogs disarm them.

    The stage is its own `Rounds`. A round consists of a command frame to each axis and the latest messages of both.
    Including a frame from each axis with its position and speed, that is four frames per millisecond. The axes send
    cyclically, so that a round does not wait but uses the latest messages.
    """

    _line: CanLine
    _generation = Generation()
    _watchdogs_verified = False
    _sent: Command | None
    _next: float
    _stop_sent: bool
    _send_failed: float

    # --- opening -----------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        own = self.settings
        port = self._far_end() if self._far_end is not None else bus.open_interface(own.interface)
        line = self._line = CanLine(port, own.interface, (own.node_1, own.node_2))
        rates = self._measure_rates()
        self._generation = generation = _generation_of(line)
        if rates["estimates_hz"] < _ESTIMATE_RATE or rates["heartbeats_hz"] < _HEARTBEAT_RATE:
            commands = [
                f"{axis}.config.can.{name} = {period}"
                for axis in generation.axes
                for name, period in zip(generation.rate_settings, (1, 10), strict=True)
            ]
            raise DeviceOpenError(
                f"an axis says where it is {rates['estimates_hz']:.0f} times a second, and has "
                f"{rates['heartbeats_hz']:.0f} heartbeats: an arm needs 1000 and 100. Type in odrivetool: "
                f"{'; '.join(commands)}; odrv0.save_configuration()."
            )
        supply = signals(bus.VOLTAGE, line.request(line.nodes[0], bus.VOLTAGE))
        if supply is None:
            raise line.no_reply(line.nodes[0])
        stage.require_voltage(supply[0], own)
        self._disarm()
        self._clear(own.clear_errors)
        self.homed = self._watchdogs_verified = False
        self._offsets[:] = 0.0
        self.facts = {
            "interface": own.interface,
            "nodes": list(line.nodes),
            "firmware": generation.firmware,
            **{name: round(rate, 1) for name, rate in rates.items()},
        }

    def _measure_rates(self) -> dict[str, float]:
        """Measure the rates of estimates and heartbeats of the slower axis [Hz], without sending anything.

        Raises
        ------
        DeviceOpenError
            If an axis is not received, or another program commands it.
        """
        line, kinds = self._line, {"estimates_hz": bus.ESTIMATES, "heartbeats_hz": bus.HEARTBEAT}
        begin = time.perf_counter()
        before = {kind: [line.latest(node, kind).total for node in line.nodes] for kind in kinds.values()}
        line.wait(lambda: False, _LISTEN)
        duration = time.perf_counter() - begin
        for axis, node in enumerate(line.nodes):
            if not line.latest(node, bus.HEARTBEAT).total:
                others = ", ".join(map(str, sorted(line.others)))
                own = [str(other) for other in line.nodes if line.latest(other, bus.HEARTBEAT).total]
                there = others or (f"only {own[0]}" if own else "")
                received = f"; there is {there}" if there else ""
                why = f" {line.warning[0].upper()}{line.warning[1:]}." if line.warning else ""
                raise DeviceOpenError(
                    f"axis {axis} was not heard as node {node} of {line.name}{received}.{why} Switch the drive's "
                    f"supply on, choose the nodes with {WHERE}.node_1 and node_2, and have both ends at {BIT_RATE} "
                    f"bit/s: sudo ip link set {line.name} up type can bitrate {BIT_RATE}; "
                    f"odrv0.can.config.baud_rate = {BIT_RATE}."
                )
            if node in line.rivals:
                raise DeviceOpenError(
                    f"another program commands node {node} on {line.name}: end it (candump {line.name} shows its "
                    "frames)."
                )
        return {
            name: min(line.latest(node, kind).total - was for node, was in zip(line.nodes, before[kind], strict=True))
            / duration
            for name, kind in kinds.items()
        }

    def _clear(self, allowed: bool = False) -> None:
        """Clear errors if they are only expired watchdogs, which is normal without traffic, or if allowed.

        Raises
        ------
        DeviceOpenError
            If other errors are present, or errors persist.
        """
        watchdog = self._generation.watchdog
        if not allowed and any(self._line.heartbeat(axis).error & ~watchdog for axis in AXES):
            raise DeviceOpenError(
                f"the drive has errors from earlier: {self.trouble(hidden=watchdog)}. See to it, then start again "
                f"with {WHERE}.clear_errors=true."
            )
        for node in self._line.nodes:  # this also feeds the watchdog, which would otherwise expire again at once
            self._line.send(message(node, bus.CLEAR_ERRORS, 0))
        if not self._await(lambda beat: not beat.error, feed=True):
            raise DeviceOpenError(f"the drive has errors that do not go away: {self.trouble()}.")

    # --- positions ---------------------------------------------------------------------------------------------------

    def _set_home(self, turns: Vector) -> None:
        positions, speeds = self._estimates()
        if np.abs(speeds).max() > stage.STILL:
            raise DeviceOpenError("the arm moved while it was being homed: hold it still and start again.")
        self._offsets[:] = positions - turns

    def _estimates(self) -> tuple[Vector, Vector]:
        """Return the next estimates of both axes: positions [turn], speeds [turn/s]."""
        line = self._line
        before = {node: line.latest(node, bus.ESTIMATES).total for node in line.nodes}
        line.wait(
            lambda: all(line.latest(node, bus.ESTIMATES).total > total for node, total in before.items()),
            stage.PATIENCE,
        )
        found = []
        for node, total in before.items():
            latest = line.latest(node, bus.ESTIMATES)
            numbers = signals(bus.ESTIMATES, latest.data)
            if numbers is None or latest.total <= total:
                raise line.no_reply(node)
            found.append(numbers)
        positions, speeds = np.array(found).T
        return positions, speeds

    def _turns(self) -> Vector:
        return self._estimates()[0]

    # --- arming and disarming ----------------------------------------------------------------------------------------

    def _energise(self) -> tuple[Rounds, float]:
        """Arm both motors at their present positions.

        A drive does not report over CAN whether its watchdogs are enabled, and they cannot be enabled over CAN.
        Therefore the motors are first armed without further frames, and the drive must disarm them in time.
        """
        own = self.settings
        if not self._watchdogs_verified:
            self._arm_motors()
            begin, watchdog = time.perf_counter(), self._generation.watchdog
            expired = self._await(lambda beat: bool(beat.error & watchdog), own.watchdog + _WATCHDOG_DELAY)
            took = time.perf_counter() - begin
            if not expired:
                self._disarm()
                lines = "; ".join(
                    f"{axis}.config.watchdog_timeout = {own.watchdog:g}; {axis}.config.enable_watchdog = True"
                    for axis in self._generation.axes
                )
                raise DeviceOpenError(
                    f"a motor was still driven {took:.2g} s after the last frame, {WHERE}.watchdog is "
                    f"{own.watchdog:g} s: the drive's watchdog is off, or slower. Type in odrivetool: {lines}; "
                    "odrv0.save_configuration()."
                )
            self._watchdogs_verified = True
        self._arm_motors()
        self._next, self._send_failed = 0.0, math.inf
        self.invalidate()
        return self, _RESERVE * max(self._demands.speeds) or _FASTEST

    def _arm_motors(self) -> None:
        """Arm both motors at their present positions; disarm them again if that fails."""
        line, own = self._line, self.settings
        try:
            self._clear()
            for node in line.nodes:
                where = signals(bus.ESTIMATES, line.latest(node, bus.ESTIMATES).data)
                if where is None:
                    raise line.no_reply(node)
                line.send(message(node, bus.MODES, stage.POSITION_CONTROL, stage.PASS_THROUGH))
                if own.position_gain > 0.0:
                    line.send(message(node, bus.POSITION_GAIN, own.position_gain))
                if own.speed_gain > 0.0:
                    line.send(message(node, bus.SPEED_GAINS, own.speed_gain, own.integrator_gain))
                line.send(bus.input_position(node, where[0]))
            for node in line.nodes:
                line.send(message(node, bus.STATE, stage.CLOSED_LOOP))
            self._await(lambda beat: beat.state == stage.CLOSED_LOOP or bool(beat.error), feed=True)
            if any(line.heartbeat(axis) != (0, stage.CLOSED_LOOP) for axis in AXES):
                raise DeviceFault(self.trouble() or "an axis does not go into closed loop")
        except DeviceFault as error:
            self._disarm()
            raise DeviceOpenError(f"the motors could not be armed: {error}") from error

    def _disarm(self) -> None:
        """Disarm both motors and verify it; send an emergency stop to an axis that does not obey."""
        for node in self._line.nodes:
            self._line.send(*bus.idle_frames(node))
        if self._await(lambda beat: beat.state == stage.IDLE, _IDLE_TIMEOUT):
            return
        for node in self._line.nodes:
            self._line.send(message(node, bus.ESTOP))
        if not self._await(lambda beat: beat.state == stage.IDLE):
            now = [self._line.heartbeat(axis).state for axis in AXES]
            raise DeviceFault(f"its axes are in the states {now[0]} and {now[1]}, not in {stage.IDLE}")

    def _await(
        self, condition: Callable[[Heartbeat], bool], timeout: float = _STATE_TIMEOUT, *, feed: bool = False
    ) -> bool:
        """Wait until new heartbeats of both axes satisfy `condition`; return False on timeout.

        With `feed`, the watchdogs are fed in the meantime.
        """
        line = self._line
        before = [line.latest(node, bus.HEARTBEAT).total for node in line.nodes]
        latest = time.perf_counter() + timeout
        while True:
            fresh = [line.latest(node, bus.HEARTBEAT).total > was for node, was in zip(line.nodes, before, strict=True)]
            if all(fresh) and all(condition(line.heartbeat(axis)) for axis in AXES):
                return True
            if time.perf_counter() > latest:
                return False
            if feed:
                line.send(*(bus.Frame(node, bus.ESTIMATES, remote=True) for node in line.nodes))
            line.wait(lambda: False, _POLL)

    # --- rounds ------------------------------------------------------------------------------------------------------

    def set_wake_callback(self, wake: Callable[[], object]) -> None:
        """See `Rounds.set_wake_callback`."""
        self._line.wake = wake

    def exchange(self, command: Command | None, *, alive: bool = False, timeout: float = 0.0) -> Answer:
        """Send the command as a CAN frame per axis and return the latest messages.

        See `Rounds.exchange`. A stop is sent only once, so that it does not feed the watchdogs.
        """
        line, oldest = self._line, timeout or self.settings.reply_timeout
        begin = now = time.perf_counter()
        if command is None:
            line.wait(lambda: all(line.latest(node, bus.ESTIMATES).time >= begin for node in line.nodes), oldest)
        elif alive and (command is not self._sent or now >= self._next):
            self._send(command, now)
            self._sent, self._next, self._stop_sent = command, now + REPEAT, False
        elif not alive and not self._stop_sent:
            self._send((*command[:2], 0.0, 0.0, 0.0, 0.0), now)
            self._stop_sent = True
        line.raise_fault()
        now = time.perf_counter()
        found, when = [], now
        name, value = "axis0.current_state", stage.CLOSED_LOOP
        for axis in reversed(AXES):
            node = line.nodes[axis]
            estimates, beat = line.latest(node, bus.ESTIMATES), line.latest(node, bus.HEARTBEAT)
            numbers, state = signals(bus.ESTIMATES, estimates.data), signals(bus.HEARTBEAT, beat.data)
            late = estimates.time < now - oldest or beat.time < now - _HEARTBEAT_AGE
            if numbers is None or state is None or late:
                raise line.no_reply(node)
            if state[0]:
                name, value = f"axis{axis}.error", state[0]
            elif state[1] != stage.CLOSED_LOOP:
                name, value = f"axis{axis}.current_state", state[1]
            found.append(numbers)
            when = min(when, estimates.time)
        (two, two_speed), (one, one_speed) = found
        return Answer(when, (one, two, one_speed, two_speed), name, value)

    def _send(self, command: Command, now: float) -> None:
        """Send a command; tolerate a full send queue for as long as a missing reply.

        Speeds and torques that are too large for a position command have separate frames.
        """
        frames = []
        for axis, node in enumerate(self._line.nodes):
            position, speed, torque = command[axis], command[2 + axis], command[4 + axis]
            frames.append(bus.input_position(node, position, speed, torque))
            if max(abs(speed), abs(torque)) > bus.MOST:
                frames.append(message(node, bus.INPUT_SPEED, speed, torque))
        try:
            self._line.send(*frames)
            self._send_failed = math.inf
        except TransferError as error:
            self._send_failed = min(self._send_failed, now)
            if error.trouble is not Trouble.TIMEOUT or now - self._send_failed > self.settings.reply_timeout:
                raise

    def invalidate(self) -> None:
        """See `Rounds.invalidate`."""
        self._sent, self._stop_sent = None, False

    def trouble(self, hidden: int = 0) -> str:
        """Request and return the errors of both axes in one line, without the bits `hidden`."""
        line, texts = self._line, []
        parts = {"motor": bus.MOTOR_ERROR, "encoder": bus.ENCODER_ERROR, "controller": bus.CONTROLLER_ERROR}
        for axis, node in enumerate(line.nodes):
            error = line.heartbeat(axis).error
            try:
                if self._generation.new:
                    active, reason = signals(bus.ERRORS, line.request(node, bus.ERRORS)) or (error, 0)
                    words = in_words((error | active | reason) & ~hidden, NEW_ERRORS)
                    texts.append(f"axis {axis}: {', '.join(words)}" if words else "")
                else:
                    found = {part: bus.bits(line.request(node, command)) or 0 for part, command in parts.items()}
                    texts.append(explain(axis, {"": error & ~hidden, **found}))
            except TransferError:
                texts.append(f"axis {axis}: error {error:#x}" if error else "")
        return "; ".join(filter(None, texts))

    def disable_motors(self) -> None:
        """See `Rounds.disable_motors`."""
        for node in self._line.nodes:
            with contextlib.suppress(TransferError):
                self._line.send(*bus.idle_frames(node))
