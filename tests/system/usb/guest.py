"""What is done with an emulated stick in a kernel of its own: ``python -m tests.system.usb.guest PROFILE`` inside."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from devices.common.bus.transfers import TransferError
from devices.joystick.hid.usages import X, Y
from devices.joystick.opening import playing
from tests.processes import until
from tests.system.usb import evdev
from tests.system.usb.driven import KEPT_DURATION, packaged_libusb
from tests.system.usb.scenes import (
    AXES,
    AXES_REPORT,
    FAR,
    GAIN_REPORT,
    NEAR,
    SCENES,
    dead,
    drive,
    identity,
    mute,
    other_program,
    unplugged,
)
from tests.system.usb.stage import PATIENCE, Stage, again, play, staged
from tests.system.usb.usbip import VhciPlug

LEVELS = (
    (0x5000, -0x5000),
    (-0x6400, 0x6400),
    (0x4000, -0x1000),
    (0x7FFF, -0x8000),
    (-0x8000, 0x7FFF),
    (0, 0),
)
"""Magnitudes of the effects from the left and from away, as the kernel counts them: -0x8000 to 0x7FFF."""

AXIS_CODES = evdev.ABS_X, evdev.ABS_Y
STICK, WHEEL = (evdev.FROM_LEFT, evdev.FROM_AWAY), (evdev.FROM_LEFT,)
"""Directions of the effects."""

SET_REPORT, GET_REPORT = b"\x21\x09", b"\xa1\x01"


def directions(stage: Stage) -> tuple[int, ...]:
    """Return from where its effects push: along both axes of a stick, along the only one of a wheel."""
    return WHEEL if stage.stick.profile.handle.rim_radius else STICK


def enumerated(stage: Stage) -> Any:
    """See what the kernel has made of the stick."""
    node = evdev.wait_for_node()
    with evdev.opened(node) as device:
        effects = device.effects
    _rest(stage)
    return {
        "report_descriptor_sha256": hashlib.sha256(evdev.report_descriptor()).hexdigest(),
        "effects": effects,
        "probe": [report.hex() for report in stage.plug.bus.sent(stage.stick.profile.out_endpoint)],
    }


def axes(stage: Stage) -> Any:
    """Let the kernel push the handle, and compare the axes it reports with those on the wire.

    The queue of an event device holds the latest few events only: it is emptied all the time.
    """
    profile, bus = stage.stick.profile, stage.plug.bus
    moves: set[tuple[int, int]] = set()

    def moved() -> bool:
        moves.update(device.moves())
        seen = [sum(axis == code for axis, _ in moves) for code in AXIS_CODES]
        return min(seen) > 1 and bool(np.linalg.norm(stage.stick.handle) > 2.0 * FAR)

    with evdev.opened(evdev.wait_for_node()) as device:
        for code in AXIS_CODES:
            device.sharpen(code)
        with _pushing_kernel(stage, device):
            until(moved, "the handle never moved", 10.0, 1e-3)
            with stage.fault("dropout"):
                reports = [data for data in bus.sent(profile.in_endpoint) if data[0] == AXES_REPORT]
                wire = [AXES[profile.name](report) for report in reports]
                until(lambda: _places(device) == wire[-1], "the kernel says another place", 5.0)
                moves.update(device.moves())
    return {"wire": wire, "moves": sorted(moves)}


def _places(device: evdev.EventDevice) -> tuple[int, ...]:
    return tuple(map(device.axis, AXIS_CODES))


@contextmanager
def _pushing_kernel(stage: Stage, device: evdev.EventDevice) -> Iterator[None]:
    """Let the kernel push with half of both motors, and nothing else, until the motors do that; end it."""
    half = stage.stick.plant.force_of((0.5, 0.5))
    device.let_go()
    effects = [device.constant(0x4000, direction, 5000) for direction in directions(stage)]
    for effect in effects:
        device.play(effect, 1)
    until(lambda: np.linalg.norm(stage.stick.force - half) < NEAR, "the kernel pushed nothing", 10.0)
    yield
    for effect in effects:
        device.erase(effect)
    until(lambda: not np.any(stage.stick.force), "the force stayed", 10.0)


def same_bytes(stage: Stage) -> Any:
    """Play the same constant effects by the kernel's driver and by ours; return what either sent over each pipe."""
    by_kernel, by_us = _play_by_kernel(stage), _play_by_us(stage)
    with evdev.opened(evdev.wait_for_node()) as device, _pushing_kernel(stage, device):
        return {"kernel": by_kernel, "ours": by_us, "pushes_again": True}


def _play_by_kernel(stage: Stage) -> dict[str, list[str]]:
    milliseconds, towards = round(1e3 * KEPT_DURATION), directions(stage)
    with evdev.opened(evdev.wait_for_node()) as device:
        _rest(stage)  # until the kernel's driver has looked at the stick
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


def _play_by_us(stage: Stage) -> dict[str, list[str]]:
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
def _all_told(stage: Stage, kind: str) -> Iterator[None]:
    """Wait at the end until a report of this kind has arrived for each effect."""
    expected = len(stage.stick.received(kind)) + len(directions(stage))
    yield
    until(lambda: len(stage.stick.received(kind)) >= expected, f"a report {kind} never arrived", 10.0)


def _rest(stage: Stage) -> None:
    """Wait until nothing has been told the stick for a hundred frames."""
    last, since = -1, 0

    def resting() -> bool:
        nonlocal last, since
        with stage.stick.lock:
            stage.stick.catch_up()
            told, now = len(stage.stick.firmware.log), stage.stick.firmware.frame
        if told != last:
            last, since = told, now
        return now - since > 100

    until(resting, "it never came to rest", 15.0)


def _pipes(stage: Stage, begin: int) -> dict[str, list[str]]:
    """Return what has gone to the device since, over the OUT pipe and as feature reports, and what was asked of it."""
    with stage.plug.bus.lock:
        log = stage.plug.bus.log[begin:]
    return {
        "written": [packet.data.hex() for packet in log if packet.endpoint == stage.stick.profile.out_endpoint],
        "features": [packet.data.hex() for packet in log if packet.setup[:2] == SET_REPORT],
        "asked": [packet.setup[2:6].hex() for packet in log if packet.setup[:2] == GET_REPORT],
    }


def killed(stage: Stage) -> Any:
    """See to it that after a driver was killed the kernel can push with the stick again."""

    def push(stage: Stage) -> bool:
        with evdev.opened(evdev.wait_for_node()) as device, _pushing_kernel(stage, device):
            return True

    return other_program(stage, after_kill=push)


def halted(stage: Stage) -> Any:
    """Tell the stick something through a pipe that is halted, and that nobody can clear."""

    def said() -> str:
        try:
            transport.write(GAIN_REPORT)
        except TransferError as error:
            return str(error)
        return ""

    with stage.connected() as transport:
        with stage.fault("stall"):
            facts = {"first": said()}
        facts["then"] = said()
    stage.stick.halted.clear()
    return facts


def main() -> None:
    stage = staged(sys.argv[1], Path("/run"), VhciPlug)
    hidraw_scenes = identity, drive, mute, halted, dead, unplugged, other_program
    by_hidraw = [again(scene, f"{scene.__name__}_by_hidraw", transport="hidraw") for scene in hidraw_scenes]
    whole = enumerated, axes, same_bytes, *SCENES, again(killed, "other_program"), *by_hidraw
    with packaged_libusb():  # asking for the system's takes a second here
        play(stage, whole if directions(stage) == STICK else (enumerated, same_bytes))


if __name__ == "__main__":
    main()
