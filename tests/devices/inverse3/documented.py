"""Messages with the fields that the service's documentation names (inverse SDK 3.5), to read and to answer."""

import copy
import json

ZERO = {"x": 0.0, "y": 0.0, "z": 0.0}
ANGLES = {"a0": 0.0, "a1": 0.0, "a2": 0.0}
UPRIGHT = {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0}
ONE = {"x": 1.0, "y": 1.0, "z": 1.0}

STATE = {
    "cursor_position": {"x": 0.01, "y": -0.12, "z": 0.15},
    "cursor_velocity": {"x": 0.2, "y": 0.0, "z": -0.1},
    "angular_position": {"a0": 10.0, "a1": 20.0, "a2": 30.0},
    "angular_velocity": ANGLES,
    "body_orientation": UPRIGHT,
    "current_cursor_force": {"x": 0.5, "y": -0.25, "z": 1.0},
    "current_cursor_position": ZERO,
    "current_angular_torques": ANGLES,
    "current_angular_position": ANGLES,
    "control_domain": "cartesian",
    "control_mode": "idle",
    "transform": {},
}

STATUS = {"calibrated": True, "in_use": False, "power_supply": True, "ready": True, "started": True}

CONFIG = {
    "type": "inverse3",
    "port": "COM12",
    "device_info": {"major_version": 7, "minor_version": 4, "id": "049D", "device_type": 4, "uuid": "e1f0-42"},
    "extended_device_id": "0000A049D",
    "extended_firmware_version": "7.4",
    "gravity_compensation": {"enabled": True, "scaling_factor": 1.0},
    "handedness": "right",
    "streaming_mode": "USB",
    "torque_scaling": {"enabled": True},
    "home_return": {"enabled": False},
    "preset": "defaults",
    "basis": {"permutation": "XYZ"},
    "mount": {"position": ZERO, "rotation": UPRIGHT, "scale": ONE},
    "filters": {"force_gate": {"gain": 0.3}, "damping": {"scalar": 0.0}},
}


def inventory(*changes, **device):
    """Return the first message, with ``path=value`` changed in its only device."""
    one = {"device_id": "049D", "config": CONFIG, "state": STATE, "status": STATUS, **device}
    return message({**changed(one, *changes)})


def answer(*changes, **device):
    """Return a later message, likewise."""
    return message(changed({"device_id": "049D", "state": STATE, "status": STATUS, **device}, *changes))


def changed(device, *changes):
    device = copy.deepcopy(device)
    for path, value in changes:
        *inner, last = path.split(".")
        table = device
        for name in inner:
            table = table[name]
        if value is None:
            del table[last]
        else:
            table[last] = value
    return device


def message(*devices):
    grips = {"verse_grip": [], "wireless_verse_grip": [{"device_id": "61576", "state": {"buttons": {"a": True}}}]}
    return json.dumps({"session_id": 7, "inverse3": list(devices), **grips})


# The commands of the documentation with their arguments there.
COMMANDS = {
    "set_cursor_force": {"vector": {"x": 0.0, "y": 0.0, "z": 1.5}},
    "set_cursor_position": {"position": {"x": 0.0, "y": -0.12, "z": 0.16}},
    "set_angular_torques": {"torques": ANGLES},
    "set_angular_position": {"angles": {"a0": 30.0, "a1": 45.0, "a2": 60.0}},
    "probe_position": {},
    "set_transform": {"transform": {"scale": {"x": 2.0, "y": 2.0, "z": 2.0}}},
}
