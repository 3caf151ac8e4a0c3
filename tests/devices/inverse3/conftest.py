"""What the tests at an emulated service share."""

import gc

import pytest

from devices.emulators.inverse3.server import InverseServer
from tests.devices.inverse3.services import emulated


@pytest.fixture(autouse=True, scope="package")
def no_collection():
    """Collect no garbage while threads must answer each other within milliseconds; the servo does the same."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def server():
    with InverseServer([emulated()]) as server:
        yield server
