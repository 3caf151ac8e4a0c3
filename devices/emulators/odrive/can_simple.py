"""CAN Simple of the emulated drive: frames in, frames out, and cyclic frames of each axis.

Emulated properties of firmware 0.5.6:

- Each axis is a node. Every frame to it feeds its watchdog, including unknown frames.
- An expired watchdog is an error in every state; a clear command to either axis clears the errors of both.
- A position command contains a speed and a torque of 16 bits, in thousandths, and replaces both.
- Requests are remote frames, or frames without data.
- Positions and speeds are sent every ``encoder_rate_ms``, heartbeats every ``heartbeat_rate_ms``: 10 and 100 ms by
  default.

A Pro or S1 (0.6) uses the same frames for driving. It replies with its version, the format of its heartbeat and errors
differs, and a clear command only affects its own axis. Not emulated: trajectories, SDO, new addresses.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator

from devices.emulators.odrive.axis import WATCHDOG_EXPIRED, Axis
from devices.emulators.odrive.firmware import Firmware, single

ESTOP_REQUESTED = 0x4000
"""Error bit of an axis with firmware 0.5."""

NEW_WATCHDOG, NEW_ESTOP, NEW_DRIVER = 1 << 24, 1 << 25, 1 << 5
"""Error bits of a Pro or S1: watchdog, emergency stop, and all others (as a fault of the gate driver)."""

NEW_BAD_STATE = 1 << 3
"""Error bit of a Pro or S1 for a state that is not possible: an estimate is missing."""

_MOST = 20
"""Maximum number of overdue cyclic frames that are sent later."""

_ROUNDING = 1e-6
_FRAME = struct.Struct("=IB3x8s")
_REMOTE, _ODD = 0x40000000, 0xA0000000
_PAIR = "<ff"


class CanSimple:
    """CAN interface of the drive.

    Parameters
    ----------
    inside : Firmware
        The drive.
    nodes : (int, int)
        Nodes of both axes.
    version : (int, int, int)
        Firmware version: 0.5.x, or 0.6.x for a Pro or S1.
    estimates, heartbeats : float
        Periods of the cyclic messages [s]; 0 for none.
    """

    def __init__(
        self,
        inside: Firmware,
        nodes: tuple[int, int] = (0, 1),
        version: tuple[int, int, int] = (0, 5, 6),
        estimates: float = 1e-3,
        heartbeats: float = 10e-3,
    ) -> None:
        self.nodes, self.version = nodes, version
        self.estimates, self.heartbeats = estimates, heartbeats
        self._inside = inside
        self._next: dict[tuple[int, int], float] = {}
        self._orders: dict[int, Callable[[Axis, bytes], None]] = {
            0x02: lambda axis, _: axis.fail(ESTOP_REQUESTED),
            0x07: lambda axis, data: axis.request(int(_first("<I", data))),
            0x0B: self._modes,
            0x0C: self._position,
            0x0D: self._speed,
            0x0E: lambda axis, data: self._put(axis, {"controller.input_torque": _first("<f", data)}),
            0x0F: self._limits,
            0x18: self._clear,
            0x1A: lambda axis, data: self._put(axis, {"controller.config.pos_gain": _first("<f", data)}),
            0x1B: self._gains,
        }
        self._answers: dict[int, Callable[[Axis], bytes]] = {
            0x09: self._estimates,
            0x17: lambda _: struct.pack(_PAIR, single(self._inside.values["vbus_voltage"]), 0.0),
        }
        if self.new:
            self._answers |= {0x00: self._version_reply, 0x03: self._error_reply}
        else:
            self._answers |= {
                0x03: lambda axis: struct.pack("<Q", int(axis.values["motor.error"])),
                0x04: lambda axis: struct.pack("<II", axis.values.get("encoder.error", 0), 0),
                0x1D: lambda axis: struct.pack("<II", axis.values["controller.error"], 0),
            }

    @property
    def new(self) -> bool:
        """Whether it is a Pro or S1."""
        return self.version >= (0, 6, 0)

    # --- frames ------------------------------------------------------------------------------------------------------

    def handle_frame(self, raw: bytes) -> bytes | None:
        """Process a frame, (16,) bytes; return the reply to a request, else None."""
        identifier, length, data = _FRAME.unpack(raw)
        node, command = (identifier & 0x7FF) >> 5, identifier & 0x1F
        if identifier & _ODD or node not in self.nodes:
            return None
        axis = self._inside.axes[self.nodes.index(node)]
        axis.feed()
        asks = bool(identifier & _REMOTE) or not length
        if asks and command in self._answers:
            return _frame(node, command, self._answers[command](axis))
        order = self._orders.get(command)
        if order is not None and not identifier & _REMOTE:
            order(axis, data)
        return None

    def due_frames(self, now: float) -> Iterator[bytes]:
        """Yield the cyclic frames that are due at the time `now` [s]."""
        for node, axis in zip(self.nodes, self._inside.axes, strict=True):
            for command, say in ((0x01, self._heartbeat), (0x09, self._estimates)):
                period = self.heartbeats if command == 1 else self.estimates
                for _ in range(self._count(now, (node, command), period)):
                    yield _frame(node, command, say(axis))

    def _count(self, now: float, key: tuple[int, int], period: float) -> int:
        """Return how often a message is due, including the messages since the last access."""
        if not period:
            return 0
        first = max(self._next.setdefault(key, now), now - _MOST * period)
        count = max(math.floor((now - first) / period + _ROUNDING) + 1, 0)
        self._next[key] = first + count * period
        return count

    def next(self) -> float:
        """Return the time at which the next cyclic frame is due [s]."""
        return min(self._next.values(), default=0.0)

    def restart(self) -> None:
        """Restart the cyclic messages, as after switching on the supply."""
        self._next.clear()

    # --- replies and cyclic messages ---------------------------------------------------------------------------------

    def _estimates(self, axis: Axis) -> bytes:
        held = axis.values
        return struct.pack(_PAIR, single(held["encoder.pos_estimate"]), single(held["encoder.vel_estimate"]))

    def _heartbeat(self, axis: Axis) -> bytes:
        held = axis.values
        state = held["current_state"]
        if self.new:
            return struct.pack("<IBBBB", self._new_errors(axis), state, 0, 1, 0)
        flags = (bool(held.get(f"{part}.error", 0)) for part in ("motor", "encoder", "controller"))
        motor, encoder, controller = flags
        return struct.pack("<IBBBB", held["error"], state, motor, encoder, controller | 0x80)

    def _new_errors(self, axis: Axis) -> int:
        error = int(axis.values["error"])
        known = {WATCHDOG_EXPIRED: NEW_WATCHDOG, ESTOP_REQUESTED: NEW_ESTOP, 1: NEW_BAD_STATE}
        found = sum(bit for own, bit in known.items() if error & own)
        return found | (NEW_DRIVER if error & ~sum(known) else 0)

    def _error_reply(self, axis: Axis) -> bytes:
        return struct.pack("<II", self._new_errors(axis), self._new_errors(axis))

    def _version_reply(self, _: Axis) -> bytes:
        return struct.pack("<8B", 2, 4, 4, 58, *self.version, 0)

    # --- commands ----------------------------------------------------------------------------------------------------

    def _put(self, axis: Axis, values: dict[str, float]) -> None:
        axis.values |= values

    def _modes(self, axis: Axis, data: bytes) -> None:
        control, inputs = struct.unpack("<ii", data)
        self._put(axis, {"controller.config.control_mode": control, "controller.config.input_mode": inputs})

    def _position(self, axis: Axis, data: bytes) -> None:
        position, speed, torque = struct.unpack("<fhh", data)
        self._put(axis, {"controller.input_pos": position})
        self._inputs(axis, 0.001 * speed, 0.001 * torque)

    def _speed(self, axis: Axis, data: bytes) -> None:
        self._inputs(axis, *struct.unpack(_PAIR, data))

    def _inputs(self, axis: Axis, speed: float, torque: float) -> None:
        self._put(axis, {"controller.input_vel": speed, "controller.input_torque": torque})

    def _limits(self, axis: Axis, data: bytes) -> None:
        speed, current = struct.unpack(_PAIR, data)
        self._put(axis, {"controller.config.vel_limit": speed, "motor.config.current_lim": current})

    def _gains(self, axis: Axis, data: bytes) -> None:
        gain, integrator = struct.unpack(_PAIR, data)
        self._put(axis, {"controller.config.vel_gain": gain, "controller.config.vel_integrator_gain": integrator})

    def _clear(self, axis: Axis, _: bytes) -> None:
        if self.new:
            axis.clear_errors()
        else:
            self._inside.clear_errors()


def _first(form: str, data: bytes) -> float:
    return struct.unpack_from(form, data)[0]  # type: ignore[no-any-return]


def _frame(node: int, command: int, data: bytes) -> bytes:
    return _FRAME.pack(node << 5 | command, len(data), data)
