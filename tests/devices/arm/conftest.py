"""The time of the tests that step it."""

import pytest

from tests.devices.arm import odrive_rig
from tests.devices.stepped_time import SteppedTime


@pytest.fixture
def stepped(request, monkeypatch):
    """Run a test, its rig and its devices in a time that `tests.devices.arm.odrive_rig.run` steps."""
    own = SteppedTime()
    monkeypatch.setattr(odrive_rig.Place, "time", own)
    monkeypatch.setattr(odrive_rig.Place, "boards", ())
    with odrive_rig.living_by(own, (request.module, odrive_rig)):
        yield own
