"""Scenes of a stick in user-mode Linux, compared with the kernel's driver for force-feedback sticks.

``python -m tests.system.usb.guest PROFILE`` plays them inside. The kernel's own way to a stick is ioctl on
``/dev/input/event*`` and ``/dev/hidraw*``, with numbers and structures of linux/input.h, linux/input-event-codes.h and
linux/hidraw.h on 64 bits.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from devices.joystick.device import playing
from devices.joystick.hid.usages import X, Y
from tests.processes import until
from tests.system.usb.kernel import VhciPlug
from tests.system.usb.scenes import (
    KEPT_DURATION,
    NEAR,
    PATIENCE,
    SCENES,
    dead,
    drive,
    identity,
    mute,
    named,
    other_program,
    packaged_libusb,
    play,
    staged,
    unplugged,
)

EV_FF = 0x15
FF_CONSTANT, FF_AUTOCENTER = 0x52, 0x61
NEW = -1

# Directions from which an effect pushes, clockwise from away; a full turn is 0x10000.
FROM_LEFT, FROM_AWAY = 0xC000, 0x0000

_EVENT = struct.Struct("@llHHi")
# type, id, direction, trigger button and interval, length, delay [ms]; of a constant effect the level.
_EFFECT = struct.Struct("@HhHHHHH2xh30x")

_UPLOAD = 0x40304580
_ERASE = 0x40044581
_DESCRIPTOR_SIZE = 0x80044801
_DESCRIPTOR = 0x90044802


def force_nodes():
    """Return the event devices that can play forces."""
    nodes = sorted(Path("/sys/class/input").glob("event*"))
    return [Path("/dev/input") / node.name for node in nodes if (node / "device/capabilities/ff").read_text() != "0\n"]


def wait_for_node():
    """Wait for the event device of the stick and return it."""
    nodes: list[Path] = until(force_nodes, "the kernel made no force-feedback device", 20.0)
    until(nodes[0].exists, f"{nodes[0]} never came", 5.0)
    return nodes[0]


def report_descriptor():
    """Return the report descriptor that the kernel has read from the stick, through ``/dev/hidraw*``."""
    (node,) = Path("/dev").glob("hidraw*")
    with open(node, "rb") as device:
        size = bytearray(4)
        fcntl.ioctl(device, _DESCRIPTOR_SIZE, size)
        buffer = bytearray(bytes(size) + bytes(4096))
        fcntl.ioctl(device, _DESCRIPTOR, buffer)
    return bytes(buffer[4 : 4 + int.from_bytes(size, "little")])


class EventDevice:
    """An open event device."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def constant(self, level, direction, length, effect=NEW):
        """Upload a constant effect of `level` (-0x8000 to 0x7FFF) and `length` [ms]; return its number."""
        data = bytearray(_EFFECT.pack(FF_CONSTANT, effect, direction, 0, 0, length, 0, level))
        fcntl.ioctl(self._descriptor, _UPLOAD, data)
        return int(_EFFECT.unpack(data)[1])

    def disable_spring(self):
        """Switch off the spring that centres the handle, if there is one."""
        os.write(self._descriptor, _EVENT.pack(0, 0, EV_FF, FF_AUTOCENTER, 0))

    def play(self, effect, count):
        """Play an effect `count` times, or stop it with 0."""
        os.write(self._descriptor, _EVENT.pack(0, 0, EV_FF, effect, count))

    def erase(self, effect):
        """Erase an effect."""
        fcntl.ioctl(self._descriptor, _ERASE, effect)


@contextmanager
def opened(node):
    """Open an event device for a while."""
    descriptor = os.open(node, os.O_RDWR)
    try:
        yield EventDevice(descriptor)
    finally:
        os.close(descriptor)


# --- the scenes ------------------------------------------------------------------------------------------------------

# Magnitudes of the effects from the left and from away in counts of the kernel: -0x8000 to 0x7FFF.
LEVELS = (0x5000, -0x5000), (-0x6400, 0x6400), (0x4000, -0x1000), (0x7FFF, -0x8000), (-0x8000, 0x7FFF), (0, 0)

# Directions of the effects.
STICK, WHEEL = (FROM_LEFT, FROM_AWAY), (FROM_LEFT,)

SET_REPORT, GET_REPORT = b"\x21\x09", b"\xa1\x01"


def directions(stage):
    """Return the directions of the effects: both axes of a stick, the only one of a wheel."""
    return WHEEL if stage.stick.profile.handle.rim_radius else STICK


def enumerated(stage):
    """Return the report descriptor and the first reports of the kernel's driver."""
    wait_for_node()
    _rest(stage)
    return {
        "report_descriptor_sha256": hashlib.sha256(report_descriptor()).hexdigest(),
        "probe": [report.hex() for report in stage.plug.bus.sent(stage.stick.profile.out_endpoint)],
    }


@contextmanager
def _pushing_kernel(stage, device):
    """Let the kernel push with half of both motors during the block."""
    half = stage.stick.plant.force_of((0.5, 0.5))
    device.disable_spring()
    effects = [device.constant(0x4000, direction, 5000) for direction in directions(stage)]
    for effect in effects:
        device.play(effect, 1)
    until(lambda: np.linalg.norm(stage.stick.force - half) < NEAR, "the kernel pushed nothing", 10.0)
    yield
    for effect in effects:
        device.erase(effect)
    until(lambda: not np.any(stage.stick.force), "the force stayed", 10.0)


def same_bytes(stage):
    """Play the same constant effects by the kernel's driver and by ours; return the packets of either."""
    by_kernel, by_us = _play_by_kernel(stage), _play_by_us(stage)
    with opened(wait_for_node()) as device, _pushing_kernel(stage, device):
        return {"kernel": by_kernel, "ours": by_us, "pushes_again": True}


def _play_by_kernel(stage):
    milliseconds, towards = round(1e3 * KEPT_DURATION), directions(stage)
    with opened(wait_for_node()) as device:
        _rest(stage)  # until the kernel's driver has probed the stick
        begin = len(stage.plug.bus.log)
        with _all_told(stage, "operation"):
            effects = [device.constant(0, direction, milliseconds) for direction in towards]
            for effect in effects:
                device.play(effect, 1)
        for levels in LEVELS:
            with _all_told(stage, "constant"):
                for effect, direction, level in zip(effects, towards, levels[: len(towards)], strict=True):
                    device.constant(level, direction, milliseconds, effect)
        with _all_told(stage, "free"):
            for effect in effects:
                device.erase(effect)
        return _pipes(stage, begin)


def _play_by_us(stage):
    usages = (X, Y)[: len(directions(stage))]
    with stage.connected() as transport:
        begin = len(stage.plug.bus.log)
        with playing(transport, KEPT_DURATION, PATIENCE, usages, patience=10.0) as threads:
            for levels in LEVELS:
                with _all_told(stage, "constant"):
                    parts = (level / (0x7FFF if level > 0 else 0x8000) for level in levels)
                    threads.levels.publish(*parts, time.perf_counter())
                    threads.wake.call()
        return _pipes(stage, begin)


@contextmanager
def _all_told(stage, kind):
    """Wait after the block until a report of this kind has arrived for each effect."""
    expected = len(stage.stick.received(kind)) + len(directions(stage))
    yield
    until(lambda: len(stage.stick.received(kind)) >= expected, f"a report {kind} never arrived", 10.0)


def _rest(stage):
    """Wait until the stick has got no report for a hundred frames."""
    last, since = -1, 0

    def resting():
        nonlocal last, since
        with stage.stick.lock:
            stage.stick.catch_up()
            told, now = len(stage.stick.firmware.log), stage.stick.firmware.frame
        if told != last:
            last, since = told, now
        return now - since > 100

    until(resting, "it never came to rest", 15.0)


def _pipes(stage, begin):
    """Return the output and feature reports since `begin`, and the requests for reports."""
    with stage.plug.bus.lock:
        log = stage.plug.bus.log[begin:]
    return {
        "written": [packet.data.hex() for packet in log if packet.endpoint == stage.stick.profile.out_endpoint],
        "features": [packet.data.hex() for packet in log if packet.setup[:2] == SET_REPORT],
        "asked": [packet.setup[2:6].hex() for packet in log if packet.setup[:2] == GET_REPORT],
    }


def main():
    stage = staged(sys.argv[1], Path("/run"), VhciPlug)
    hidraw_scenes = identity, drive, mute, dead, unplugged, other_program
    by_hidraw = [named(f"{scene.__name__}_by_hidraw", scene, transport="hidraw") for scene in hidraw_scenes]
    whole = enumerated, same_bytes, *SCENES, other_program, *by_hidraw
    with packaged_libusb():  # searching the system takes a second
        play(stage, whole if directions(stage) == STICK else (enumerated, same_bytes))


if __name__ == "__main__":
    main()
