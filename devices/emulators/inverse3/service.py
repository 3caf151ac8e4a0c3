"""Message processing of the emulated service: every reply has the states of all devices.

As documented (inverse SDK 3.5): the first message is an inventory; commands apply to one message and expire when no
more messages arrive; configuration persists; parts of a transform without effect are omitted; unknown keys are silently
ignored. The timeout of a command is not documented; here it is `IDLE_AFTER`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from devices.emulators.inverse3.filters import Filters, Space
from devices.emulators.inverse3.handle import Handle

IDLE_AFTER = 0.5
"""Time without messages after which the last command expires [s]."""

CENTRE: Space = (0.0, -0.12, 0.15)
"""Centre of the workspace relative to the base [m]."""

_CENTRED = ("arm_front_centered", "led_front_centered")
_TURNED = ("led_front", "led_front_centered")
_DRAW = 200.0
"""Stiffness with which the service pulls the cursor to a commanded position [N/m], limited to `_MOST` [N]."""
_MOST = 3.0

LONGEST_LOG = 200_000

_STATUS = {"calibrated": True, "in_use": False, "power_supply": True, "ready": True, "started": True}


@dataclass(frozen=True, slots=True)
class Entry:
    """Log entry of a message: time [s], commanded and applied force [N], cursor [m] and velocity [m/s].

    The position is relative to the centre of the workspace.
    """

    time: float
    told: Space
    given: Space
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
    present : bool
        Whether the device is connected.
    status : dict
        Condition of the device that the service reports.
    told, given : Space
        Commanded force, and applied motor force [N].
    log : deque of Entry
        Latest messages for the device.
    """

    def __init__(self, device_id: str, kind: str, handle: Handle, filters: Filters | None = None) -> None:
        self.device_id, self.kind, self.handle = device_id, kind, handle
        self.filters = filters or Filters()
        self.present = True
        self.status = dict(_STATUS)
        self.preset, self.mode = "defaults", "idle"
        self.scale = 1.0
        self.told: Space = (0.0, 0.0, 0.0)
        self.given: Space = (0.0, 0.0, 0.0)
        self.log: deque[Entry] = deque(maxlen=LONGEST_LOG)
        self._renewed = 0.0

    def begin(self) -> None:
        """Reset the device, with the handle at the start position of the hand and without force."""
        self.handle.begin()
        self.filters.reset()
        self.told, self.mode, self._renewed = (0.0, 0.0, 0.0), "idle", 0.0
        self.given = (0.0, 0.0, 0.0)

    def advance(self, now: float) -> None:
        """Advance to the time `now` [s]; a command that is not renewed expires in between."""
        forgotten = self._renewed + IDLE_AFTER
        if now > forgotten:
            self.handle.advance(forgotten, self.given)
            self.told = self.given = (0.0, 0.0, 0.0)
            self.mode = "idle"
        self.handle.advance(now, self.given)

    def obey(self, commands: Mapping[str, Any], now: float) -> None:
        """Execute the commands of one message; without a motor command the force is zero."""
        self.told, self.mode = (0.0, 0.0, 0.0), "idle"
        if "set_cursor_force" in commands:
            self.told, self.mode = self._turned(_vector(commands["set_cursor_force"].get("vector", {}))), "force"
        elif "set_cursor_position" in commands:
            self.told, self.mode = self._drawn(_vector(commands["set_cursor_position"].get("position", {}))), "position"
        elif "set_angular_torques" in commands:
            self.mode = "torque"  # the resulting force on the cursor is not modelled
        if "set_transform" in commands:
            self.scale = commands["set_transform"].get("transform", {}).get("scale", {}).get("x", self.scale)
        self._renewed = now
        self.given = self.filters.passed(self.told, self.handle.velocity)
        self.log.append(Entry(now, self.told, self.given, self.handle.position, self.handle.velocity))

    def configure(self, configuration: Mapping[str, Any]) -> None:
        """Apply a configuration, which persists."""
        self.preset = configuration.get("preset", {}).get("preset", self.preset)
        self.filters.gate = configuration.get("force_gate", {}).get("gain", self.filters.gate)
        self.filters.damping = configuration.get("damping", {}).get("scalar", self.filters.damping)

    def inventory(self) -> dict[str, Any]:
        """Return the description of the device in the first message."""
        one = {"x": 1.0, "y": 1.0, "z": 1.0}
        mount = {"position": _point((0.0, 0.0, 0.0)), "rotation": {"w": 1.0, **_point((0.0, 0.0, 0.0))}, "scale": one}
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
            "filters": {"force_gate": {"gain": self.filters.gate}, "damping": {"scalar": self.filters.damping}},
        }
        return {**self.states(), "config": config}

    @property
    def uuid(self) -> str:
        """Unique identifier."""
        return f"5f3c9a00-0000-4000-8000-00000000{self.device_id}"

    def states(self) -> dict[str, Any]:
        """Return the state of the device in every message."""
        zeros = {"a0": 0.0, "a1": 0.0, "a2": 0.0}
        base = (0.0, 0.0, 0.0) if self.preset in _CENTRED else CENTRE
        x, y, z = self._turned(self.handle.position)
        transform = {} if self.scale == 1.0 else {"scale": {"x": self.scale, "y": self.scale, "z": self.scale}}
        state = {
            "cursor_position": _point((x + base[0], y + base[1], z + base[2])),
            "cursor_velocity": _point(self._turned(self.handle.velocity)),
            "angular_position": zeros,
            "angular_velocity": zeros,
            "body_orientation": {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0},
            "current_cursor_force": _point(self._turned(self.given)),
            "current_angular_torques": zeros,
            "control_domain": "angular" if self.mode == "torque" else "cartesian",
            "control_mode": self.mode,
            "transform": transform,
        }
        return {"device_id": self.device_id, "state": state, "status": self.status}

    def _turned(self, vector: Space) -> Space:
        """Rotate a vector between the axes of the device and the preset; the rotation is its own inverse."""
        x, y, z = vector
        return (-x, -y, z) if self.preset in _TURNED else vector

    def _drawn(self, target: Space) -> Space:
        base = (0.0, 0.0, 0.0) if self.preset in _CENTRED else CENTRE
        wanted = self._turned((target[0] - base[0], target[1] - base[1], target[2] - base[2]))
        here = self.handle.position
        pull = [max(min(_DRAW * (wanted[i] - here[i]), _MOST), -_MOST) for i in range(3)]
        return pull[0], pull[1], pull[2]


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

    def __init__(self, devices: Sequence[EmulatedDevice]) -> None:
        self.devices = list(devices)
        self.profile = ""
        self._sessions = 0

    def connect(self) -> str:
        """Return the inventory for a new client; all devices are reset."""
        self._sessions += 1
        for device in self.devices:
            device.begin()
        return self._reported_state([device.inventory() for device in self.devices if device.present])

    def receive(self, text: str, now: float, faults: Set[str] = frozenset()) -> str:
        """Process a message at `now` [s] since the connection; return the reply."""
        message = json.loads(text)
        self.profile = message.get("session", {}).get("configure", {}).get("profile", {}).get("name", self.profile)
        told = {part["device_id"]: part for part in message.get("inverse3", [])}
        for device in self.devices:
            device.advance(now)
            part = told.get(device.device_id, {})
            device.configure(part.get("configure", {}))
            device.obey(part.get("commands", {}), now)
            device.status["power_supply"] = "no-power" not in faults
            device.status["calibrated"] = "uncalibrated" not in faults
            device.present = "unplug" not in faults and device.present
        return self._reported_state([device.states() for device in self.devices if device.present])

    def _reported_state(self, devices: list[dict[str, Any]]) -> str:
        return json.dumps({"session_id": self._sessions, "inverse3": devices})


def _vector(table: Mapping[str, float]) -> Space:
    return table.get("x", 0.0), table.get("y", 0.0), table.get("z", 0.0)


def _point(vector: Space) -> dict[str, float]:
    return {"x": vector[0], "y": vector[1], "z": vector[2]}
