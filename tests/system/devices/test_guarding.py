"""The guardian process, which acts when a driver cannot and always ends."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from devices.common import guard as guarding
from devices.common.guard import FAREWELL, Guard
from devices.joystick.usb import reattaching
from haptics.errors import DeviceOpenError
from tests.processes import ended, program, until

DUTY = """
import os, time

def prepare(words):
    folder, seconds = words
    with open(os.path.join(folder, "pid"), "w") as file:
        file.write(str(os.getpid()))

    def act():
        time.sleep(float(seconds))
        open(os.path.join(folder, "done"), "w").close()
        return 0

    return act
"""


class Duty:
    """A guardian with a duty that leaves a file."""

    def __init__(self, folder):
        self.folder, self.script = folder, folder / "duty.py"
        self.script.write_text(DUTY)

    def guard(self, seconds=0.0):
        return Guard("it", str(self.script), (str(self.folder), str(seconds)))

    @property
    def pid(self):
        return int((self.folder / "pid").read_text())

    @property
    def done(self):
        return (self.folder / "done").exists()

    def until_gone(self):
        until(lambda: ended(self.pid), "the guardian does not end", 20.0)


@pytest.fixture
def duty(tmp_path):
    return Duty(tmp_path)


def test_dismissed_guardian_does_not_act(duty):
    guard = duty.guard()
    assert not ended(duty.pid)
    guard.dismiss()
    duty.until_gone()
    assert not duty.done


def test_handover_waits_no_longer_than_its_timeout(duty):
    duty.guard(seconds=0.5).hand_over(0.01)
    assert not duty.done
    duty.until_gone()
    assert duty.done


def test_guardian_ignores_signals_of_the_terminal(duty):
    guard = duty.guard()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(duty.pid, number)
    time.sleep(0.05)
    assert not ended(duty.pid)
    assert os.getsid(duty.pid) == duty.pid
    guard.hand_over(FAREWELL)
    assert duty.done


def test_duty_that_cannot_be_prepared_is_an_error(duty, tmp_path):
    with pytest.raises(DeviceOpenError, match="the guardian of it did not start"):
        Guard("it", reattaching.__file__, (str(tmp_path / "no such device"), "0"))


@pytest.mark.parametrize("call", ["socket.socketpair", "subprocess.Popen"])
def test_exhausted_system_is_an_error_that_leaks_no_files(duty, monkeypatch, call):
    def refuse(*_, **__):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    before = len(os.listdir("/proc/self/fd"))
    module, name = call.split(".")
    with monkeypatch.context() as patch:
        patch.setattr(getattr(guarding, module), name, refuse)
        with pytest.raises(DeviceOpenError, match=r"the guardian of it did not start \(Resource temporarily"):
            duty.guard()
    assert len(os.listdir("/proc/self/fd")) == before
    duty.guard().dismiss()


def test_guardian_that_ends_before_it_is_ready_is_an_error(duty, monkeypatch):
    def reset(*_):
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    monkeypatch.setattr(guarding.select, "select", reset)
    with pytest.raises(DeviceOpenError, match="the guardian of it did not start"):
        duty.guard()


DRIVER = """
import os, sys, time
from devices.common.guard import Guard

guard = Guard("it", sys.argv[1], sys.argv[2:], silence=10.0)
if os.fork() == 0:  # keeps the connection open, as memory does that is released slowly
    time.sleep(60.0)
    os._exit(0)
print("ready", flush=True)
while True:
    guard.beat()
    time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows that a process is ending")
def test_guardian_does_not_wait_for_the_connection_of_a_killed_driver(duty):
    with program("-c", DRIVER, str(duty.script), str(duty.folder), "0", stdout=subprocess.PIPE) as driver:
        assert driver.stdout.readline() == "ready\n"
        time.sleep(0.1)
        assert not duty.done
        driver.kill()
        until(lambda: duty.done, "the guardian does not act", 6.0)
        duty.until_gone()


def test_guardian_of_a_joystick_imports_the_standard_library_only():
    code = f"import runpy; runpy.run_path({reattaching.__file__!r})"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=60).returncode == 0
