"""Devices behind an emulated maker's library: compilation, motion, the maker's watchdog, faults and the record."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from devices.emulators.forcedimension import MAKER
from devices.emulators.native import compiler
from devices.emulators.native.far_end import SAG, Body, FarEnd, devices_of
from haptics.errors import ConfigurationError, DeviceOpenError
from haptics.jit import COMPILED

pytestmark = pytest.mark.skipif(not (compiler.find_compiler() and COMPILED), reason="no C compiler, or no numba")

READ, FORCE, SET = range(3)
FORCES, BRAKES, WATCHDOG, SPEED_LIMIT, HOMED = range(5)
STATE = struct.Struct("=6iQ7d")


class Devices:
    """Served devices: path of their library, new hosts, and the views from outside."""

    def __init__(self, library, resources):
        self.library, self._resources = library, resources

    def host(self, name="1"):
        return self._resources.enter_context(contextlib.closing(Host(Path(self.library).parent / name)))

    def far(self, name=""):
        return FarEnd(self.library, MAKER, name)


@contextlib.contextmanager
def served(*bodies, faults=()):
    """Serve devices in threads of this process."""
    until, end = os.pipe()
    with devices_of(MAKER, bodies, faults, until=until) as (library, serve), contextlib.ExitStack() as hosts:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Devices(library, hosts)
        finally:
            os.close(end)
            thread.join()
            os.close(until)


class Host:
    """Client of a device, written from the header."""

    def __init__(self, place):
        self.line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.settimeout(5.0)
        self.close = self.line.close
        try:
            self.line.connect(str(place))
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
        self.position, self.weight = np.array(numbers[:3]), np.array(numbers[3:])

    def arm(self, watchdog=0.0):
        self.transfer(SET, WATCHDOG, watchdog)
        self.transfer(SET, FORCES, 1.0)


def resting(point=(0.0, 0.0), **changes):
    hand = {"name": "minimum-jerk", "points": [list(point)] * 2, "rest": 60.0, "rest_force": 0.0, "rest_grip": 1.0,
            "tremor": 0.0}  # fmt: skip
    return Body("1", hand=hand, **changes)


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


def test_force_moves_the_handle_along_the_axes_of_its_plane():
    # the plane of the device's y and z; the normal is x
    body = resting(axes=(0, 1, 0, 0, 0, 1, 1, 0, 0), middle=(0.1, 0.2, 0.3), mass=0.1)
    with served(body) as devices:
        host = devices.host()
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


def test_watchdog_switches_off_at_its_exact_time_and_for_its_cause():
    with served(resting(brake=0.0)) as devices:
        host, far = devices.host(), devices.far()
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


def test_speed_limit_and_faults_switch_off():
    with served(resting((0.03, 0.0), mass=0.05)) as devices:
        host, far = devices.host(), devices.far()
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


def test_faults_by_time_count_from_the_first_force_of_every_host():
    with served(resting(), faults=["delay-20ms@0.05+0.05", "unplug@0.15+0.2"]) as devices:
        for _ in range(2):
            host = devices.host()
            host.arm()
            start = time.monotonic()
            took = {}
            with pytest.raises((EOFError, ConnectionError)):
                while True:
                    sent = time.monotonic()
                    host.transfer(FORCE, force=(0.1, 0.0, 0.0))
                    took[sent - start] = time.monotonic() - sent
                    time.sleep(1e-3)
            late = [sent for sent, length in took.items() if length > 0.019]
            assert 0.04 < min(late) and 0.1 < max(took)
            with pytest.raises((EOFError, ConnectionError)):
                devices.host()
            time.sleep(0.25)


def test_second_host_is_refused_and_a_dead_one_makes_room():
    with served(resting()) as devices:
        first = devices.host()
        second = devices.host()
        assert second.busy and not first.busy
        first.close()
        while devices.host().busy:
            time.sleep(0.01)


def test_devices_have_their_own_state_and_reference():
    with served(resting(), Body("2", homed=False, weight=(0.0, 0.0, -1.0))) as devices:
        one, other = devices.host(), devices.host("2")
        assert one.homed and not other.homed and other.weight[2] == -1.0
        wrong = other.position
        other.transfer(SET, HOMED, 1.0)
        assert np.abs(other.position - wrong).max() > 5e-3
        assert devices.far("2").state["homed"] == 1


def test_hand_in_python_is_refused():
    with pytest.raises(ConfigurationError), served(Body("1", hand={"name": "nobody"})):
        pass
