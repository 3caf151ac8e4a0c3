"""Devices behind an emulated maker's library: compilation, motion, the maker's watchdog, faults and the record."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

import numpy as np
import pytest

from devices.emulators.forcedimension import MAKER
from devices.emulators.native import compiler
from devices.emulators.native.far_end import SAG, Body
from devices.emulators.touch import MAKER as TOUCH
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.jit import COMPILED
from tests.devices.emulators.far_ends import resting, served

pytestmark = pytest.mark.skipif(not (compiler.find_compiler() and COMPILED), reason="no C compiler, or no numba")

READ, FORCE, SET = range(3)
FORCES, BRAKES, WATCHDOG, SPEED_LIMIT, HOMED = range(5)
STATE = struct.Struct("=6iQ8d")


class Host:
    """Client of a device, written from the header."""

    def __init__(self, devices, name="1"):
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.settimeout(5.0)
        self.close = self.line.close
        try:
            self.line.connect(str(devices.folder / name))
            self.receive()
        except BaseException:
            self.close()
            raise

    def transfer(self, kind, parameter=0, value=0.0, force=(0.0, 0.0, 0.0)):
        self.line.send(struct.pack("=2i4d", kind, parameter, value, *force))
        self.receive()

    def receive(self):
        data = self.line.recv(200)
        if not data:
            raise EOFError
        (self.busy, self.cause, self.forces_on, self.braking, self.homed, self.buttons, self.faults, self.time,
         *numbers) = STATE.unpack(data)  # fmt: skip
        self.position, self.weight = np.array(numbers[:3]), np.array(numbers[3:6])

    def arm(self, watchdog=0.0):
        self.transfer(SET, WATCHDOG, watchdog)
        self.transfer(SET, FORCES, 1.0)


@pytest.fixture
def host_of():
    """Connect hosts, which are closed at the end of the test."""
    with contextlib.ExitStack() as hosts:
        yield lambda *where: hosts.enter_context(contextlib.closing(Host(*where)))


def test_sources_are_compiled_once_and_again_after_a_change(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "find_folder", lambda: tmp_path)
    monkeypatch.setattr(compiler, "FOLDER", tmp_path / "sources")
    (tmp_path / "sources").mkdir()
    source = tmp_path / "sources" / "one.c"
    source.write_text("int answer(void) { return NUMBER; }\n")
    first = compiler.compiled(("one.c",), ("-DNUMBER=1",))
    written = first.stat().st_mtime_ns
    assert compiler.compiled(("one.c",), ("-DNUMBER=1",)) == first and first.stat().st_mtime_ns == written
    assert compiler.compiled(("one.c",), ("-DNUMBER=2",)) != first
    source.write_text("int answer(void) { return wrong; }\n")
    with pytest.raises(DeviceOpenError, match=r"the C compiler .*failed on the emulated device: .*one\.c"):
        compiler.compiled(("one.c",))
    assert sorted(path.name for path in tmp_path.glob("*.so")) == sorted(
        path.name for path in tmp_path.glob("one-*.so")
    ), "no part of a failed compilation remains"


def test_missing_compiler_is_said(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(DeviceOpenError, match=r"there is no C compiler .*sudo apt install gcc"):
        compiler.compiled(("far_end.c",))


def test_force_moves_the_handle_along_the_axes_of_its_plane(host_of):
    # the plane of the device's y and z; the normal is x
    body = resting(axes=(0, 1, 0, 0, 0, 1, 1, 0, 0), middle=(0.1, 0.2, 0.3), mass=0.1)
    with served(MAKER, body) as devices:
        host = host_of(devices)
        host.arm()
        for _ in range(100):
            host.transfer(FORCE, force=(SAG, 2.0, -1.0))
            time.sleep(3e-3)
        np.testing.assert_allclose(host.position[1:], (0.2 + 2.0 / 400.0, 0.3 - 1.0 / 400.0), atol=2e-4)
        last = devices.far().log()[-1]
        np.testing.assert_allclose(last["position"], host.position, atol=1e-4)
        np.testing.assert_array_equal(last["applied"], (SAG, 2.0, -1.0))
        sunk = host.position[0]
        for _ in range(20):  # SAG was held; without it, the normal axis sinks
            host.transfer(FORCE)
            time.sleep(2e-3)
        assert host.position[0] < sunk - 5e-4


def test_watchdog_switches_off_at_its_exact_time_and_for_its_cause(host_of):
    with served(MAKER, resting(brake=0.0)) as devices:
        host, far = host_of(devices), devices.far()
        host.arm(watchdog=0.2)
        host.transfer(FORCE, force=(1.0, 0.0, 0.0))
        time.sleep(0.3)  # without a further command
        *_, given, zero = far.log()
        assert zero["time"] - given["time"] == pytest.approx(0.2, abs=1e-9)
        assert given["applied"][0] == 1.0 and not zero["applied"].any() and zero["cause"] == 3
        host.transfer(FORCE, force=(1.0, 0.0, 0.0))
        assert host.cause == 3 and not host.forces_on and host.braking
        assert not far.log()[-1]["applied"].any()
        host.arm()
        assert host.cause == 0 and host.forces_on and not host.braking


def test_speed_limit_and_faults_switch_off(host_of):
    with served(MAKER, resting((0.03, 0.0), mass=0.05)) as devices:
        host, far = host_of(devices), devices.far()
        host.transfer(SET, SPEED_LIMIT, 0.3)
        host.arm()
        for _ in range(50):
            host.transfer(FORCE, force=(-10.0, 0.0, 0.0))
            time.sleep(2e-3)
        assert host.cause == 2
        host.arm()
        far.set("off-dead-man")
        host.transfer(FORCE)
        assert host.cause == 6
        host.arm()
        host.transfer(READ)
        assert host.forces_on, "a fault switches off when it begins"
        far.clear()


def test_faults_by_time_count_from_the_first_force_of_every_host(host_of):
    with served(MAKER, resting(), faults=["off-dead-man@0.2", "unplug@1.2+1"]) as devices:
        for _ in range(2):
            host = host_of(devices)
            host.arm()
            start, off = time.monotonic(), None
            with pytest.raises((EOFError, ConnectionError)):
                while True:
                    host.transfer(FORCE, force=(0.1, 0.0, 0.0))
                    if off is None and host.cause == 6:
                        off = time.monotonic() - start
                    time.sleep(1e-3)
            unplugged = time.monotonic() - start
            assert off is not None
            assert 0.2 <= off < unplugged and unplugged >= 1.2
            with pytest.raises((EOFError, ConnectionError)):
                host_of(devices)
            time.sleep(1.05)


def test_faults_of_the_opening_count_from_the_connection(host_of):
    with served(TOUCH, resting(), faults=["no-licence@0+0.1", "warm-motors@0"]) as devices:
        for _ in range(2):
            host = host_of(devices)
            assert host.faults == TOUCH.bits("no-licence"), "there was no force yet"
            time.sleep(0.12)
            host.transfer(READ)
            assert not host.faults
            host.close()
            while devices.far().state["connected"]:
                time.sleep(0.01)


def test_second_host_is_refused_and_a_dead_one_makes_room(host_of):
    with served(MAKER, resting()) as devices:
        first = host_of(devices)
        second = host_of(devices)
        assert second.busy and not first.busy
        first.close()
        while host_of(devices).busy:
            time.sleep(0.01)


def test_devices_have_their_own_state_and_reference(host_of):
    with served(MAKER, resting(), Body("2", homed=False, weight=(0.0, 0.0, -1.0))) as devices:
        one, other = host_of(devices), host_of(devices, "2")
        assert one.homed and not other.homed and other.weight[2] == -1.0
        wrong = other.position
        other.transfer(SET, HOMED, 1.0)
        assert np.abs(other.position - wrong).max() > 5e-3
        assert devices.far("2").state["homed"] == 1


def test_hand_in_python_is_refused():
    with pytest.raises(ConfigurationError), served(MAKER, Body("1", hand={"name": "nobody"})):
        pass
