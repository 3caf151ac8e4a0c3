"""JSON messages of the service (inverse SDK 3.5): forces and settings out, inventory and states in.

The service sends an inventory after the connection is opened, and then one message with the states of all devices for
each message that it receives. A command holds for one message. The service silently ignores unknown keys, so that a
misspelt name shows only in the force that it reports.

Input is not trusted: every number that is used is validated, and missing values do not count as zero. The one
documented exception: parts of a ``transform`` that have no effect are omitted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from haptics.errors import HapticError

PORT = 10001
ADDRESS = f"ws://localhost:{PORT}"
"""Default address of the service."""

KINDS = {"inverse3": 0.07, "inverse3x": 0.07, "minverse": 0.028}
"""Half the side of the workspace [m] by kind of device.

The workspace is a square inside the sphere of 0.10 m (0.04 m) about the middle within which the manufacturer's examples
keep the cursor.
"""

PROFILE = "haptics:friction"
"""Name of this client, which the service's hub displays."""

_LARGEST = 1e6  # largest plausible number of metres or newtons

Vector3 = tuple[float, float, float]

_UNKNOWN: Vector3 = (math.nan, math.nan, math.nan)
_UNIT_SCALE: Vector3 = (1.0, 1.0, 1.0)

_FORCE = '{"inverse3":[{"device_id":%s,"commands":{"set_cursor_force":{"vector":{"x":%%.6f,"y":%%.6f,"z":%%.6f}}}}]}'


class MessageError(HapticError):
    """Error of a message from the service that is invalid."""


class Reading(NamedTuple):
    """State of a device.

    Attributes
    ----------
    position : Vector3
        Position of the cursor [m].
    force : Vector3
        Force that the service reports for the motors [N]; nan if missing.
    trouble : str
        Description of a device error; empty without an error.
    """

    position: Vector3
    force: Vector3
    trouble: str


@dataclass(frozen=True)
class Listed:
    """Device in the inventory.

    Attributes
    ----------
    device_id : str
        Short number that commands use; not guaranteed to be unique.
    names : tuple of str
        All accepted names: the short number, the long number, the UUID.
    kind : str
        ``inverse3``, ``inverse3x``, ``minverse``.
    status : mapping
        Conditions that the service reports: name to truth value.
    scale : Vector3
        Scale factors that the service applies to the workspace.
    """

    device_id: str
    names: tuple[str, ...]
    kind: str
    status: Mapping[str, bool]
    scale: Vector3


# --- outgoing ---------------------------------------------------------------------------------------------------------


def force_template(device_id: str) -> str:
    """Return the message that sets a force [N], a template for ``%`` with its three components."""
    return _FORCE % json.dumps(device_id).replace("%", "%%")


def set_up_message(device_id: str, preset: str) -> bytes:
    """Return the first message: name of this client, preset of the origin, and a zero force."""
    zero = {"set_cursor_force": {"vector": {"x": 0.0, "y": 0.0, "z": 0.0}}}
    message = {
        "session": {"configure": {"profile": {"name": PROFILE}}},
        "inverse3": [{"device_id": device_id, "configure": {"preset": {"preset": preset}}, "commands": zero}],
    }
    return json.dumps(message).encode("ascii")


# --- incoming ---------------------------------------------------------------------------------------------------------


def _refuse(word: str) -> NoReturn:
    raise MessageError(f"the service sent the number {word}")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse(text: str) -> list[Mapping[str, Any]]:
    """Return the devices in a message, each a JSON object with at least its ``device_id``.

    Raises
    ------
    MessageError
        If it is not a message of the service.
    """
    try:
        message = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"the service sent something that is no JSON ({text[:40]!r})") from error
    devices = message.get("inverse3", []) if isinstance(message, dict) else None
    if not isinstance(devices, list) or not all(
        isinstance(device, dict) and isinstance(device.get("device_id"), str) for device in devices
    ):
        raise MessageError(f"the service sent something that is no list of devices ({text[:40]!r})")
    return devices


def parse_inventory(text: str) -> list[Listed]:
    """Return the devices in the inventory, the service's first message.

    Raises
    ------
    MessageError
        If it is not an inventory.
    """
    found = []
    for device in parse(text):
        config, state, status = (_table(device, name) for name in ("config", "state", "status"))
        uuid = _table(config, "device_info").get("uuid")
        names = (device["device_id"], config.get("extended_device_id"), uuid)
        scales = (_scale(_table(config, "mount")), _scale(_table(state, "transform")))
        x, y, z = (mount * transform for mount, transform in zip(*scales, strict=True))
        listed = Listed(
            device_id=device["device_id"],
            names=tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name)),
            kind=str(config.get("type", "")),
            status={word: value for word, value in status.items() if isinstance(value, bool)},
            scale=(x, y, z),
        )
        found.append(listed)
    return found


def find_reading(text: str, device_id: str) -> Reading:
    """Return the state of a device from a message.

    Raises
    ------
    MessageError
        If it is not a message of the service, the device is missing, or its cursor position is missing.
    """
    for device in parse(text):
        if device["device_id"] == device_id:
            state, status = _table(device, "state"), _table(device, "status")
            position = _vector(state.get("cursor_position"))
            if not math.isfinite(sum(position)):
                raise MessageError(f"the service does not say where the cursor of {device_id} is")
            # missing values are no reason, nor is ``in_use``, because this driver itself uses the device
            trouble = next((words for word, words in _TROUBLES.items() if status.get(word) is False), "")
            if _scale(_table(state, "transform")) != _UNIT_SCALE:
                trouble = _STRETCHED
            return Reading(position, _vector(state.get("current_cursor_force")), trouble)
    raise MessageError(f"the device {device_id} is no longer there: has its cable come off?")


_STRETCHED = "has a stretched space: another program navigates with it, or its workspace transform must be reset"
# Status name, in the order of validation, to the meaning of a false value.
_TROUBLES = {
    "power_supply": "has no power: plug in its power supply",
    "calibrated": "is not calibrated: put the grip into its inkwell and wait for the light, or follow the Haply Hub",
    "started": "has not been started by the service: look at it in the Haply Hub",
    "ready": "is not ready: look at it in the Haply Hub",
}


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    """Return a valid number, nan otherwise."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and abs(value) < _LARGEST else math.nan


def _vector(value: Any) -> Vector3:
    if not isinstance(value, dict):
        return _UNKNOWN
    return _number(value.get("x")), _number(value.get("y")), _number(value.get("z"))


def _scale(transform: Mapping[str, Any]) -> Vector3:
    """Return the scale of a transform; the service omits a scale of 1."""
    return _vector(transform["scale"]) if "scale" in transform else _UNIT_SCALE
