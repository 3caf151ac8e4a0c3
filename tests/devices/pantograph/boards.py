"""Emulated boards with a quick operator, and the driver at one of them."""

import contextlib
import time

import numpy as np

import devices
from devices.common import driver as drivers
from devices.common import exchange
from devices.emulators import hapi
from devices.emulators.hapi import HapiBoard
from devices.pantograph import board as boards
from tests.devices.inverse3.services import LONG, holding, wait_until  # noqa: F401

QUICK = {"at_home": True, "hold": 0.05, "reply_timeout": 0.2, "watchdog": 0.5}
# What lives by a stepped time (`tests.devices.stepped_time`), with `PATIENT` guardian and port, which do not.
STEPPED = hapi, drivers, exchange, boards

PATIENT = {"watchdog": 1.0, "reply_timeout": 0.5}

# Readings in which a driver with the settings `QUICK` has seen the arms at home for long enough.
HELD = 27


def new_board(mechanism="gen-1", *, held=HELD, **settings):
    return HapiBoard(mechanism, held=held, carry=0.04, **settings)


def wait_for_sample(device, now):
    """Wait until the driver has a sample taken after `now`, or has failed."""
    exchange = device._opened()
    wait_until(lambda: exchange.failure or exchange.samples.read()[0] >= now, pause=1e-4)


def driver(board, clock=None, **changes):
    return devices.create_device("pantograph", {"port": board.port, **QUICK, **changes}, clock=clock)


def let_go(board):
    """Return True if the operator has released the handle."""
    _ = board.handle
    return board.firmware.arms.clock.tick > 0


@contextlib.contextmanager
def driven(board, clock=None, **changes):
    device = driver(board, clock, **changes)
    device.open()
    try:
        wait_until(lambda: let_go(board))
        yield device
    finally:
        device.close()


def exercise(device, duration=0.3):
    latest = time.monotonic() + duration
    while time.monotonic() < latest:
        device.read()
        device.write(np.array((0.2, 0.1)))
        time.sleep(1e-3)
