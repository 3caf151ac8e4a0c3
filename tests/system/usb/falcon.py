"""Scenes of an emulated Falcon below real libusb (``python -m tests.system.usb.falcon``)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from devices.emulators.child import raise_priority
from devices.emulators.falcon import EmulatedFalcon, make_image
from devices.falcon.device import Falcon
from haptics.errors import DeviceFault
from tests.devices.falcon.test_wire import mechanism
from tests.system.usb.drive import DriveBus, Stage
from tests.system.usb.scenes import play
from tests.system.usb.umockdev import FOLDER, UsbDeviceFiles

PATIENT = {"reply_timeout": 1.0, "watchdog": 0.5}


def push(device, count=100):
    """Exchange forces for samples."""
    for _ in range(count):
        device.read()
        device.write(np.array((1.0, 0.5)))
        time.sleep(1e-3)


def session(stage):
    """Load a firmware, home the Falcon, push and close."""
    image = Path(os.environ[FOLDER]) / "firmware.bin"
    image.write_bytes(make_image(200))
    device = Falcon({**PATIENT, "firmware": str(image)})
    device.open()
    push(device)
    found = {"motors": stage.stick.processor.motors, **device.facts, "bound": str(stage.plug.drivers.get(0))}
    place = device.read().position.tolist()
    device.close()
    return {**found, "place": place, "after": stage.stick.processor.motors, "released": 0 not in stage.plug.drivers}


def guarded(stage):
    """Leave the Falcon to the guardian, which takes the interface; return its exit status."""
    device = Falcon(PATIENT)
    device.open()
    push(device)
    pushed = stage.stick.processor.motors
    exchange = device._opened()
    exchange.guard.hand_over(2.0)
    status = exchange.guard._process.returncode
    said = ""
    try:
        push(device)
    except DeviceFault as error:
        said = str(error)
    after = stage.stick.processor.motors
    try:
        device.close()
    except DeviceFault:
        pass
    return {"pushed": pushed, "status": status, "said": said, "after": after}


def unplugged(stage):
    """Unplug the Falcon while packets are in flight."""
    device = Falcon(PATIENT)
    device.open()
    push(device, 20)
    stage.plug.unplug()
    said = []
    start = time.monotonic()
    for action in (lambda: push(device, 1000), device.close):
        try:
            action()
        except DeviceFault as error:
            said.append(str(error))
    took = time.monotonic() - start
    stage.plug.plug()
    return {"said": said, "took": took}


def main():
    raise_priority()  # as emulators do
    held: Any = mechanism(sag=0.0)
    held.handle.advance = lambda *_: None  # kernels are not compiled here, and too slow
    falcon: Any = EmulatedFalcon(held, state="switched on")
    plug = UsbDeviceFiles(Path(os.environ[FOLDER]), falcon, DriveBus)
    stage: Any = Stage(falcon, plug)
    play(stage, (session, guarded, unplugged))


if __name__ == "__main__":
    main()
