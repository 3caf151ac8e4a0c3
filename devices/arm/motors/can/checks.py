"""Checks of two axes on a CAN bus before their motors may move; arming and disarming."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from devices.arm.motors.can import codec
from devices.arm.motors.can.codec import Frame, Heartbeat
from devices.arm.motors.can.generations import OLD, Generation, new
from devices.arm.motors.can.line import CanLine
from devices.arm.motors.can.port import BIT_RATE
from devices.arm.motors.checks import AXES, CLOSED_LOOP, IDLE, PASS_THROUGH, POSITION_CONTROL
from devices.arm.motors.settings import WHERE, OdriveSettings
from devices.common.bus import TransferError
from haptics.errors import DeviceFault, DeviceOpenError

LISTEN = 0.3
"""Time for which the cyclic messages of the axes are counted [s]: three heartbeats of a drive with default settings."""

ESTIMATES = 750.0
"""Minimum rate of positions and speeds [Hz]: the drive must send them every millisecond, not every second one."""

HEARTBEATS = 50.0
"""Minimum rate of heartbeats [Hz], from which a disarmed axis is detected."""

_SETTLE = 1.0
_OBEYS = 0.3
"""Time after which a motor that is still armed gets an emergency stop [s]: some heartbeats."""

_POLL = 2e-3
_UNPUNCTUAL = 0.05
"""Maximum delay until a heartbeat shows an expired watchdog [s]."""


def beat(line: CanLine, axis: int) -> Heartbeat:
    """Return the latest heartbeat of an axis; raise `TransferError` if none was received."""
    node = line.nodes[axis]
    found = codec.heartbeat(line.latest(node, codec.HEARTBEAT).data)
    if found is None:
        raise line.silent(node)
    return found


def words_of(line: CanLine, generation: Generation, hidden: int = 0) -> str:
    """Request and return the errors of both axes in one line, without the bits `hidden`."""
    told = []
    for axis in AXES:
        error = beat(line, axis).error
        with contextlib.suppress(TransferError):
            told.append(generation.words(line.request, axis, line.nodes[axis], error, hidden))
            continue
        told.append(f"axis {axis}: error {error:#x}" if error else "")
    return "; ".join(filter(None, told))


# --- checks at opening -----------------------------------------------------------------------------------------------


def listen(line: CanLine) -> dict[str, float]:
    """Measure the rates of estimates and heartbeats of the slower axis [Hz], without sending anything.

    Raises
    ------
    DeviceOpenError
        If an axis is not received, or another program commands it.
    """
    kinds = {"estimates_hz": codec.ESTIMATES, "heartbeats_hz": codec.HEARTBEAT}
    begin = time.perf_counter()
    before = {kind: [line.latest(node, kind).total for node in line.nodes] for kind in kinds.values()}
    line.wait(lambda: False, LISTEN)
    duration = time.perf_counter() - begin
    for axis, node in enumerate(line.nodes):
        if not line.latest(node, codec.HEARTBEAT).total:
            raise DeviceOpenError(_unheard(line, axis, node))
        if node in line.rivals:
            raise DeviceOpenError(
                f"another program commands node {node} on {line.name}: end it (candump {line.name} shows its frames)."
            )
    return {
        name: min(line.latest(node, kind).total - was for node, was in zip(line.nodes, before[kind], strict=True))
        / duration
        for name, kind in kinds.items()
    }


def _unheard(line: CanLine, axis: int, node: int) -> str:
    heard = f"; there is {', '.join(map(str, sorted(line.others)))}" if line.others else ""
    own = [other for other in line.nodes if line.latest(other, codec.HEARTBEAT).total]
    heard = heard or (f"; there is only {own[0]}" if own else "")
    why = f" {line.warning[0].upper()}{line.warning[1:]}." if line.warning else ""
    return (
        f"axis {axis} was not heard as node {node} of {line.name}{heard}.{why} Switch the drive's supply on, choose "
        f"the nodes with {WHERE}.node_1 and node_2, and have both ends at {BIT_RATE} bit/s: "
        f"sudo ip link set {line.name} up type can bitrate {BIT_RATE}; odrv0.can.config.baud_rate = {BIT_RATE}."
    )


def generation_of(line: CanLine) -> Generation:
    """Return the firmware generation of the drive; firmware 0.5 does not answer the version request."""
    try:
        version = line.request(line.nodes[0], codec.VERSION, attempts=1)
    except TransferError:
        line.require_whole()
        return OLD
    return new(version) if len(version) >= 8 else OLD


def require_rates(rates: dict[str, float], generation: Generation) -> None:
    """Require sufficient rates of estimates and heartbeats from both axes.

    Raises
    ------
    DeviceOpenError
        With the measured rates and the commands to type.
    """
    if rates["estimates_hz"] >= ESTIMATES and rates["heartbeats_hz"] >= HEARTBEATS:
        return
    lines = [
        f"{axis}.{name} = {period}"
        for axis in generation.axes
        for name, period in ((generation.estimate_rate, 1), (generation.heartbeat_rate, 10))
    ]
    raise DeviceOpenError(
        f"an axis says where it is {rates['estimates_hz']:.0f} times a second, and has {rates['heartbeats_hz']:.0f} "
        f"heartbeats: an arm needs 1000 and 100. Type in odrivetool: {'; '.join(lines)}; odrv0.save_configuration()."
    )


def require_usable(line: CanLine, generation: Generation, settings: OdriveSettings) -> None:
    """Require supply voltage and no errors; the motors are disarmed in any case.

    Raises
    ------
    DeviceOpenError
        With the problem and its remedy.
    """
    supply = codec.pair(line.request(line.nodes[0], codec.VOLTAGE))
    if supply is None:
        raise line.silent(line.nodes[0])
    voltage = supply[0]
    if not settings.min_voltage <= voltage <= settings.max_voltage:
        raise DeviceOpenError(
            f"the drive's supply has {voltage:.1f} V, it must have {settings.min_voltage:g} to "
            f"{settings.max_voltage:g} V: switch it on, or check it."
        )
    rest(line)
    _clear(line, generation, settings.clear_errors)


def _clear(line: CanLine, generation: Generation, allowed: bool = False) -> None:
    """Clear errors if they are only expired watchdogs, which is normal without traffic, or if allowed.

    Raises
    ------
    DeviceOpenError
        If other errors are present, or errors persist.
    """
    errors = [beat(line, axis).error for axis in AXES]
    if not allowed and any(bits & ~generation.watchdog for bits in errors):
        raise DeviceOpenError(
            f"the drive has errors from earlier: {words_of(line, generation, generation.watchdog)}. See to it, then "
            f"start again with {WHERE}.clear_errors=true."
        )
    for node in line.nodes:  # this also feeds the watchdog, which would otherwise expire again at once
        line.send(codec.clear_errors(node))
    if not _await(line, lambda beat: not beat.error, feed=True):
        raise DeviceOpenError(f"the drive has errors that do not go away: {words_of(line, generation)}.")


# --- arming and disarming --------------------------------------------------------------------------------------------


def energise(line: CanLine, generation: Generation, settings: OdriveSettings) -> None:
    """Arm both motors at their present positions.

    Raises
    ------
    DeviceOpenError
        If they cannot be armed; they are disarmed again.
    """
    try:
        _clear(line, generation)
        for node in line.nodes:
            line.send(*_set_up(line, node, settings))
        for node in line.nodes:
            line.send(codec.requested_state(node, CLOSED_LOOP))
        _await(line, lambda beat: beat.state == CLOSED_LOOP or bool(beat.error), feed=True)
        if any(beat(line, axis) != (0, CLOSED_LOOP) for axis in AXES):
            raise DeviceFault(words_of(line, generation) or "an axis does not go into closed loop")
    except DeviceFault as error:
        rest(line)
        raise DeviceOpenError(f"the motors could not be armed: {error}") from error


def _set_up(line: CanLine, node: int, settings: OdriveSettings) -> list[Frame]:
    """Return the frames that configure an axis before it is armed."""
    where = codec.pair(line.latest(node, codec.ESTIMATES).data)
    if where is None:
        raise line.silent(node)
    frames = [codec.modes(node, POSITION_CONTROL, PASS_THROUGH)]
    if settings.position_gain > 0.0:
        frames.append(codec.position_gain(node, settings.position_gain))
    if settings.speed_gain > 0.0:
        frames.append(codec.speed_gains(node, settings.speed_gain, settings.integrator_gain))
    return [*frames, codec.input_position(node, where[0])]


def prove_watchdogs(line: CanLine, generation: Generation, settings: OdriveSettings) -> None:
    """Arm both motors, stop sending, and require that the drive disarms them in time.

    A drive does not report over CAN whether its watchdogs are enabled, and they cannot be enabled over CAN. They are
    therefore tested.

    Raises
    ------
    DeviceOpenError
        If a motor is still armed, with the commands to type.
    """
    energise(line, generation, settings)
    begin = time.perf_counter()
    expired = _await(line, lambda beat: bool(beat.error & generation.watchdog), settings.watchdog + _UNPUNCTUAL)
    took = time.perf_counter() - begin
    if not expired:
        rest(line)
        lines = "; ".join(
            f"{axis}.config.watchdog_timeout = {settings.watchdog:g}; {axis}.config.enable_watchdog = True"
            for axis in generation.axes
        )
        raise DeviceOpenError(
            f"a motor was still driven {took:.2g} s after the last frame, {WHERE}.watchdog is {settings.watchdog:g} s: "
            f"the drive's watchdog is off, or slower. Type in odrivetool: {lines}; odrv0.save_configuration()."
        )


def rest(line: CanLine) -> None:
    """Disarm both motors and verify it; send an emergency stop to an axis that does not obey.

    Raises
    ------
    DeviceFault
        If the motors may still be armed.
    """
    for node in line.nodes:
        line.send(codec.input_speed(node, 0.0, 0.0), codec.requested_state(node, IDLE))
    if _await(line, lambda beat: beat.state == IDLE, _OBEYS):
        return
    for node in line.nodes:
        line.send(codec.emergency_stop(node))
    if not _await(line, lambda beat: beat.state == IDLE):
        now = [beat(line, axis).state for axis in AXES]
        raise DeviceFault(f"its axes are in the states {now[0]} and {now[1]}, not in {IDLE}")


def _await(line: CanLine, true: Callable[[Heartbeat], bool], timeout: float = _SETTLE, *, feed: bool = False) -> bool:
    """Wait until new heartbeats of both axes satisfy `true`; return False on timeout.

    With `feed`, the watchdogs are fed in the meantime.
    """
    before = [line.latest(node, codec.HEARTBEAT).total for node in line.nodes]
    latest = time.perf_counter() + timeout
    while True:
        fresh = [line.latest(node, codec.HEARTBEAT).total > was for node, was in zip(line.nodes, before, strict=True)]
        if all(fresh) and all(true(beat(line, axis)) for axis in AXES):
            return True
        if time.perf_counter() > latest:
            return False
        if feed:
            line.send(*(codec.request_frame(node, codec.ESTIMATES) for node in line.nodes))
        line.wait(lambda: False, _POLL)
