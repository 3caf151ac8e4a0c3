"""What the tests of the whole driver share."""

import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.trace import Trace
from tests.devices.joystick.doubles import STILL, make


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compile everything: an emulated stick lives by the wall's clock, which does not wait for a compiler."""
    device = EmulatedPidJoystick({"emulated": True, "hand": STILL})
    with device:
        device.read()
    trace = Trace.create(tmp_path_factory.mktemp("compiled") / "trace", capacity=64)
    Servo(device, MasslessImpedance(Coulomb(1.0), 100.0, 1.0), trace).warm_up()


@pytest.fixture
def trace(tmp_path):
    return Trace.create(tmp_path / "trace", capacity=16384)


@pytest.fixture
def opened():
    device, stick = make()
    device.open()
    yield device, stick
    device.close()
