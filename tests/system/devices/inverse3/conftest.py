"""What the tests at an emulated service share."""

import pytest

from devices.emulators.inverse3.server import InverseServer
from tests.devices.inverse3.services import emulated


@pytest.fixture
def server():
    with InverseServer([emulated()]) as server:
        yield server
