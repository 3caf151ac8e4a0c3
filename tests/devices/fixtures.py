"""Fixtures of the driver tests: emulated devices, stepped time, compiled kernels."""

import pytest

from devices.emulated.joystick import EmulatedPidJoystick
from devices.emulators.inverse3 import InverseServer
from haptics import Coulomb, MasslessImpedance, Servo
from haptics.trace import Trace
from tests.devices.arm import odrive_rig
from tests.devices.inverse3.services import emulated
from tests.devices.joystick.doubles import STILL, make
from tests.devices.pantograph.boards import holding, new_board
from tests.devices.stepped_time import SteppedTime


@pytest.fixture(scope="session")
def compiled_stick(tmp_path_factory):
    """Compile all kernels of a stick: an emulated stick runs in real time, which does not wait for a compiler."""
    device = EmulatedPidJoystick({"emulated": True, "hand": STILL})
    with device:
        device.read()
    trace = Trace.create(tmp_path_factory.mktemp("compiled") / "trace", capacity=64)
    Servo(device, MasslessImpedance(Coulomb(1.0), 100.0, 1.0), trace).warm_up()


@pytest.fixture
def opened():
    device, stick = make()
    device.open()
    yield device, stick
    device.close()


@pytest.fixture
def stepped(request, monkeypatch):
    """Run a test, its rig and its devices in a time that `tests.devices.arm.odrive_rig.run` steps."""
    own = SteppedTime()
    monkeypatch.setattr(odrive_rig.Place, "time", own)
    monkeypatch.setattr(odrive_rig.Place, "boards", ())
    with odrive_rig.living_by(own, (request.module, odrive_rig)):
        yield own


@pytest.fixture
def server():
    with InverseServer([emulated()]) as server:
        yield server


@pytest.fixture
def board():
    with new_board(hand=holding([0.0, 0.0])) as board:
        yield board


@pytest.fixture
def own_cache(monkeypatch, tmp_path_factory):
    """Keep the cache of endpoint tables in a temporary folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
