"""Emulated services in this process, and the driver at one of them."""

import contextlib
import socket
import threading
import time

import numpy as np

import devices
from devices.emulators.inverse3 import EmulatedDevice, Filters, Handle

PATIENT = {"reply_timeout": 1.0, "watchdog": 0.5, "patience": 5.0}
# Patience with a busy machine [s].
LONG = 20.0


def holding(point=(0.0, 0.0)):
    """Return a hand that holds on to one point."""
    return {"name": "minimum-jerk", "points": [list(point)] * 2, "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0,
            "tremor": 0.0}  # fmt: skip


def emulated(device_id="049D", kind="inverse3", plane="xy", hand=None, filters=None):
    hand = holding() if hand is None else hand
    return EmulatedDevice(device_id, kind, Handle(kind, plane, hand, seed=0, mass=0.2, damping=0.5), filters)


def transparent():
    """Filters that take nothing away."""
    return Filters(fixed=0.0, gate=0.0)


def driver(server, clock=None, **changes):
    return devices.create_device("inverse3", {"address": server.address, **PATIENT, **changes}, clock=clock)


@contextlib.contextmanager
def driven(server, clock=None, **changes):
    device = driver(server, clock, **changes)
    device.open()
    try:
        yield device
    finally:
        device.close()


def wait_until(condition, patience=LONG, pause=2e-3):
    latest = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < latest, "it did not come about"
        time.sleep(pause)


def exercise(device, duration=0.05, force=(0.3, 0.2), share=0.0):
    latest = time.monotonic() + duration
    while time.monotonic() < latest:
        device.read()
        device.compensate(share)
        device.write(np.array(force))
        time.sleep(1e-3)


@contextlib.contextmanager
def answering(act):
    """Give the address of a port at which ``act(line)`` serves one client."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            line, _ = listener.accept()
            with line:
                line.settimeout(LONG)
                act(line)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    host, port = listener.getsockname()
    try:
        yield f"ws://{host}:{port}"
    finally:
        listener.close()
        thread.join(LONG)


def received_head(line):
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(4096)
    return data
