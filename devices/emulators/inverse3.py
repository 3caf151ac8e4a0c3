"""Service of a Haply Inverse3 on a local TCP port, with handles and a hand.

It is written only from the RFC and the documented messages (inverse SDK 3.5) and shares no code with the driver, so
that a mistake there does not cancel out here. As documented, the first message is an inventory, every reply has the
states of all devices, a force applies to one message and expires when messages cease, the preset persists, and other
commands are silently ignored, like unknown keys. Where the real service is not documented (its damper, its gate, its
command timeout), it uses the simplest interpretation of the documentation.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from devices.emulators import websocket
from devices.emulators.handle import HandleInSpace, Space
from devices.emulators.loop import BlockingDevice
from devices.emulators.wire_faults import INVERSE3_FAULTS, WireFaults

_ZERO: Space = (0.0, 0.0, 0.0)

ROOM = {"inverse3": 0.08, "inverse3x": 0.08, "minverse": 0.032}
"""Maximum displacement of the handle from the centre along each axis [m]."""

AXES = {"xy": (0, 1, 2), "xz": (0, 2, 1), "yz": (1, 2, 0)}

COUNT = 1e-5
"""Resolution of the position [m]."""

IDLE_AFTER = 0.5
"""Time without messages after which the last command expires [s]."""

CENTRE: Space = (0.0, -0.12, 0.15)
"""Centre of the workspace relative to the base [m]."""

_CENTRED = ("arm_front_centered", "led_front_centered")
_ROTATED = ("led_front", "led_front_centered")

LONGEST_LOG = 200_000

_STATUS = {"calibrated": True, "in_use": False, "power_supply": True, "ready": True, "started": True}

_BLOCK = 65536
_HALF_PAUSE = 1e-3
_HANDSHAKE_TIMEOUT = 5.0
"""Timeout of a client's handshake [s]."""


@dataclass
class Filters:
    """Force filters of one device: a damper, a gate, a scale.

    Their order is documented, but not their equations. Here the damper subtracts a force proportional to the velocity.
    The gate, which should prevent oscillation of the handle, attenuates every change of the force that is opposite to
    the previous change.

    Attributes
    ----------
    fixed : float
        Damper [N s/m].
    gate : float
        Fraction of a reversal of the force that is suppressed, 0 to 1.
    scale : float
        Factor on all forces.
    """

    fixed: float = 0.05
    gate: float = 0.3
    scale: float = 1.0
    _force: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    _step: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def apply(self, force: Space, velocity: Space) -> Space:
        """Return the filtered `force` [N] at a `velocity` [m/s]; to be called once per command."""
        left = []
        for i in range(3):
            wanted = force[i] - self.fixed * velocity[i]
            step = wanted - self._force[i]
            turned = step * self._step[i] < 0.0
            self._step[i] = step
            self._force[i] += step * (1.0 - self.gate if turned else 1.0)
            left.append(self.scale * self._force[i])
        return tuple(left)

    def reset(self) -> None:
        """Reset the filters."""
        self._force, self._step = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]


class Handle(HandleInSpace):
    """Handle with quantized positions. Gravity is compensated, as in the service.

    Parameters
    ----------
    kind : str
        A key of `ROOM`.
    plane : str
        A key of `AXES`: the plane of the hand's motion.
    hand, seed, mass, damping
        See `devices.emulators.handle.HandleInSpace`.
    """

    def __init__(
        self, kind: str, plane: str, hand: Mapping[str, Any] | None, *, seed: int, mass: float, damping: float
    ) -> None:
        axes = np.eye(3)[list(AXES[plane])].tolist()
        super().__init__(axes, 3 * (ROOM[kind],), hand, seed=seed, mass=mass, damping=damping)

    @property
    def position(self) -> Space:
        """Position relative to the centre, quantized [m]."""
        return tuple(round(x / COUNT) * COUNT for x in self.place)


@dataclass(frozen=True, slots=True)
class Entry:
    """Log entry of a message: time [s], commanded and applied force [N], cursor [m] and velocity [m/s].

    The position is relative to the centre of the workspace.
    """

    time: float
    commanded: Space
    applied: Space
    position: Space
    velocity: Space


class EmulatedDevice:
    """Device connected to the service.

    Parameters
    ----------
    device_id : str
        Device number.
    kind : str
        ``inverse3``, ``inverse3x`` or ``minverse``.
    handle : Handle
        Handle of the device.
    filters : Filters
        Force filters.

    Attributes
    ----------
    uuid : str
        Unique identifier.
    present : bool
        Whether the device is connected.
    status : dict
        Condition of the device that the service reports.
    commanded, applied : Space
        Commanded force, and applied motor force [N].
    log : deque of Entry
        Latest messages for the device.
    """

    def __init__(self, device_id: str, kind: str, handle: Handle, filters: Filters | None = None) -> None:
        self.device_id, self.kind, self.handle = device_id, kind, handle
        self.filters = filters or Filters()
        self.present = True
        self.status = dict(_STATUS)
        self.uuid = f"5f3c9a00-0000-4000-8000-00000000{device_id}"
        self.preset, self.mode = "defaults", "idle"
        self.commanded: Space = _ZERO
        self.applied: Space = _ZERO
        self.log: deque[Entry] = deque(maxlen=LONGEST_LOG)
        self._renewed = 0.0

    def begin(self) -> None:
        """Reset the device, with the handle at the start position of the hand and without force."""
        self.handle.begin()
        self.filters.reset()
        self.commanded, self.applied, self.mode, self._renewed = _ZERO, _ZERO, "idle", 0.0

    def advance(self, now: float) -> None:
        """Advance to the time `now` [s]; a command that is not renewed expires in between."""
        forgotten = self._renewed + IDLE_AFTER
        if now > forgotten:
            self.handle.advance(forgotten, self.applied)
            self.commanded = self.applied = _ZERO
            self.mode = "idle"
        self.handle.advance(now, self.applied)

    def execute(self, commands: Mapping[str, Any], now: float) -> None:
        """Execute the commands of one message; other commands than a force are ignored, like unknown keys."""
        self.commanded, self.mode = _ZERO, "idle"
        if "set_cursor_force" in commands:
            vector = commands["set_cursor_force"].get("vector", {})
            self.commanded, self.mode = self._turned(tuple(vector.get(axis, 0.0) for axis in "xyz")), "force"
        self._renewed = now
        self.applied = self.filters.apply(self.commanded, self.handle.velocity)
        self.log.append(Entry(now, self.commanded, self.applied, self.handle.position, self.handle.velocity))

    def inventory(self) -> dict[str, Any]:
        """Return the description of the device in the first message."""
        mount = {
            "position": _point(_ZERO),
            "rotation": {"w": 1.0, **_point(_ZERO)},
            "scale": _point((1.0, 1.0, 1.0)),
        }
        config = {
            "type": self.kind,
            "port": "/dev/ttyACM0",
            "device_info": {"major_version": 7, "minor_version": 4, "id": self.device_id, "uuid": self.uuid},
            "extended_device_id": f"00000000{self.device_id}",
            "gravity_compensation": {"enabled": True, "scaling_factor": 1.0},
            "handedness": "right",
            "torque_scaling": {"enabled": True},
            "preset": self.preset,
            "basis": {"permutation": "XYZ"},
            "mount": mount,
            "filters": {"force_gate": {"gain": self.filters.gate}, "damping": {"scalar": 0.0}},
        }
        return {**self.states(), "config": config}

    def states(self) -> dict[str, Any]:
        """Return the state of the device in every message."""
        zeros = {"a0": 0.0, "a1": 0.0, "a2": 0.0}
        base = _ZERO if self.preset in _CENTRED else CENTRE  # centre of the workspace in the axes of the preset [m]
        state = {
            "cursor_position": _point(tuple(map(sum, zip(self._turned(self.handle.position), base, strict=True)))),
            "cursor_velocity": _point(self._turned(self.handle.velocity)),
            "angular_position": zeros,
            "angular_velocity": zeros,
            "body_orientation": {"w": 1.0, **_point(_ZERO)},
            "current_cursor_force": _point(self._turned(self.applied)),
            "current_angular_torques": zeros,
            "control_domain": "cartesian",
            "control_mode": self.mode,
            "transform": {},
        }
        return {"device_id": self.device_id, "state": state, "status": self.status}

    def _turned(self, vector: Space) -> Space:
        """Rotate a vector between the axes of the device and the preset; the rotation is its own inverse."""
        x, y, z = vector
        return (-x, -y, z) if self.preset in _ROTATED else vector


@dataclass
class Service:
    """Emulated service.

    Parameters
    ----------
    devices : sequence of EmulatedDevice
        Connected devices.

    Attributes
    ----------
    profile : str
        Profile name that the client sends.
    """

    devices: Sequence[EmulatedDevice]
    profile: str = ""
    _sessions: int = 0

    def connect(self) -> str:
        """Return the inventory for a new client; all devices are reset."""
        self._sessions += 1
        for device in self.devices:
            device.begin()
        devices = [device.inventory() for device in self.devices if device.present]
        return json.dumps({"session_id": self._sessions, "inverse3": devices})

    def receive(self, text: str, now: float, faults: Set[str] = frozenset()) -> str:
        """Process a message at `now` [s] since the connection; return the reply."""
        message = json.loads(text)
        self.profile = message.get("session", {}).get("configure", {}).get("profile", {}).get("name", self.profile)
        parts = {part["device_id"]: part for part in message.get("inverse3", [])}
        for device in self.devices:
            device.advance(now)
            part = parts.get(device.device_id, {})
            device.preset = part.get("configure", {}).get("preset", {}).get("preset", device.preset)
            device.execute(part.get("commands", {}), now)
            device.status["power_supply"] = "no-power" not in faults
            device.status["calibrated"] = "uncalibrated" not in faults
            device.present = "unplug" not in faults and device.present
        devices = [device.states() for device in self.devices if device.present]
        return json.dumps({"session_id": self._sessions, "inverse3": devices})


def _point(vector: Space) -> dict[str, float]:
    return dict(zip("xyz", vector, strict=True))


class InverseServer(BlockingDevice):
    """Emulated service at a TCP port, for one client after the other.

    Parameters
    ----------
    devices : sequence of EmulatedDevice
        Connected devices.
    faults : iterable of str
        Faults, ``NAME@SECONDS+DURATION`` (`devices.emulators.wire_faults.INVERSE3_FAULTS`).

    Attributes
    ----------
    address : str
        Address for the driver.
    service : Service
        Message processing.
    faults : WireFaults
        The faults above, and faults that are switched manually.
    closed : list of str
        Reason for the end of every connection.
    """

    def __init__(self, devices: Sequence[EmulatedDevice], faults: Iterable[str] = ()) -> None:
        self.service = Service(devices)
        self.faults = WireFaults(INVERSE3_FAULTS, faults)
        self.closed: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.address = f"ws://{host}:{port}"

    def unplug(self) -> None:
        """Close the port."""
        self._listener.close()

    def serve(self, until: int) -> None:
        """Serve clients, one after the other, until the file descriptor `until` is readable."""
        while until not in select.select((until, self._listener.fileno()), (), ())[0]:
            line, _ = self._listener.accept()
            with line:
                try:
                    self._serve_client(line, until)
                    self.closed.append("halted")
                except (OSError, EOFError, ValueError, websocket.BadClient) as error:
                    self.closed.append(f"{type(error).__name__}: {error}")

    def _serve_client(self, line: socket.socket, until: int) -> None:
        """Serve one client until its connection ends."""
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.settimeout(_HANDSHAKE_TIMEOUT)
        data = bytearray()
        while b"\r\n\r\n" not in data:
            data += _received(line)
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        line.sendall(websocket.greeting(head))
        data = bytearray(rest)
        began = time.monotonic()
        self.faults.origin = float("inf")
        line.sendall(websocket.frame(websocket.TEXT, self.service.connect().encode()))
        while True:
            while (taken := websocket.take_frame(data)) is not None:
                kind, payload = taken
                if kind == websocket.CLOSE:
                    line.sendall(websocket.frame(websocket.CLOSE, payload))
                    raise EOFError(f"closed with {payload.hex()}")
                if kind == websocket.PING:
                    line.sendall(websocket.frame(websocket.PONG, payload))
                elif kind == websocket.TEXT:
                    self._answer(line, payload.decode(), time.monotonic() - began)
            if until in select.select((line.fileno(), until), (), ())[0]:
                return
            data += _received(line)

    def _answer(self, line: socket.socket, text: str, now: float) -> None:
        faults = self.faults.at(now)
        answer = self.service.receive(text, now, faults)
        if self.faults.origin > now and any(any(device.commanded) for device in self.service.devices):
            self.faults.origin = now
        if "hang-up" in faults:
            raise EOFError("hung up")
        if "close" in faults:
            line.sendall(websocket.frame(websocket.CLOSE, (1001).to_bytes(2, "big") + b"going away"))
            raise EOFError("closed by the fault")
        if delay := self.faults.delay(now):
            time.sleep(delay)
        for part in _spoilt(answer.encode(), faults):
            line.sendall(part)
            if "half" in faults:
                time.sleep(_HALF_PAUSE)


def _received(line: socket.socket) -> bytes:
    data = line.recv(_BLOCK)
    if not data:
        raise EOFError("the client has disconnected")
    return data


def _spoilt(answer: bytes, faults: Iterable[str]) -> list[bytes]:
    """Return the frames of an `answer` as modified by the faults, in parts."""
    present = set(faults)
    if "dropout" in present:
        return []
    if "nonsense" in present:
        return [websocket.frame(websocket.TEXT, b'{"inverse3": [' + answer[:20])]
    if "not-utf8" in present:
        return [websocket.frame(websocket.TEXT, b"\xff\xfe" + answer)]
    if "giant" in present:
        return [bytes((0x81, 127)) + (1 << 62).to_bytes(8, "big")]
    if "fragments" in present:
        third = len(answer) // 3
        ping = websocket.frame(websocket.PING, b"are you there")
        first = websocket.frame(websocket.TEXT, answer[:third], last=False)
        middle = websocket.frame(0, answer[third : 2 * third], last=False)
        return [first + ping, middle, ping + websocket.frame(0, answer[2 * third :])]
    whole = websocket.frame(websocket.TEXT, answer)
    return [whole[: len(whole) // 2], whole[len(whole) // 2 :]] if "half" in present else [whole]


@contextlib.contextmanager
def emulator(table: dict[str, Any]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Build a service with one device; yield its address and the function that serves it.

    The table has ``device_id``, ``kind``, ``plane``, ``hand``, ``seed``, ``mass`` and ``damping`` of the device
    (`Handle`), and ``faults`` (`devices.emulators.wire_faults.INVERSE3_FAULTS`).
    """
    faults, device_id, kind = table.pop("faults"), table.pop("device_id"), table.pop("kind")
    server = InverseServer([EmulatedDevice(device_id, kind, Handle(kind, **table))], faults)
    yield server.address, lambda: server.serve(sys.stdin.fileno())
