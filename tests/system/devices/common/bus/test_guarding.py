"""The guardian that acts when a driver cannot: what makes it act, what does not, and that it never stays."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devices.common.bus import guardian, guarding
from devices.common.bus.guarding import FAREWELL, Guard
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
HOST = """
import sys, time
from devices.common.bus.guarding import Guard
guard = Guard("it", sys.argv[1], sys.argv[2:])
print("guarded", flush=True)
time.sleep(60.0)
"""


class Post:
    """A guardian's post: its duty, and what became of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.script = folder, folder / "duty.py"
        self.script.write_text(DUTY)

    def guard(self, seconds: float = 0.0) -> Guard:
        return Guard("it", str(self.script), (str(self.folder), str(seconds)))

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @property
    def done(self) -> bool:
        return (self.folder / "done").exists()

    def until_gone(self) -> None:
        until(lambda: ended(self.pid), "the guardian stays", 20.0)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


def test_dismissed_it_does_nothing(post: Post) -> None:
    guard = post.guard()
    assert not ended(post.pid)
    guard.dismiss()
    post.until_gone()
    assert not post.done


def test_handed_over_to_it_does_its_duty(post: Post) -> None:
    post.guard().hand_over(FAREWELL)
    post.until_gone()
    assert post.done


def test_nobody_waits_longer_than_he_wants_to(post: Post) -> None:
    post.guard(seconds=0.5).hand_over(0.01)
    assert not post.done
    post.until_gone()
    assert post.done


def test_a_host_that_is_killed_is_noticed(post: Post) -> None:
    with program("-c", HOST, str(post.script), str(post.folder), "0", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "guarded\n"
        assert not post.done
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: post.done, "nothing was done", 20.0)
        post.until_gone()


def test_what_a_terminal_sends_is_not_for_it(post: Post) -> None:
    guard = post.guard()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(post.pid, number)
    time.sleep(0.05)
    assert not ended(post.pid)
    assert os.getsid(post.pid) == post.pid
    guard.hand_over(FAREWELL)
    assert post.done


def test_a_duty_that_cannot_be_prepared_is_said_so(post: Post, tmp_path: Path) -> None:
    with pytest.raises(DeviceOpenError, match="the guardian of it did not start"):
        Guard("it", reattaching.__file__, (str(tmp_path / "no such device"), "0"))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("call", ["socket.socketpair", "subprocess.Popen"])
def test_a_machine_that_gives_no_more_is_said_so(post: Post, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    before = open_files()
    module, name = call.split(".")
    with monkeypatch.context() as patch:
        patch.setattr(getattr(guarding, module), name, refuse)
        with pytest.raises(DeviceOpenError, match=r"the guardian of it did not start \(Resource temporarily"):
            post.guard()
    assert open_files() == before
    post.guard().dismiss()


def test_a_guardian_that_is_gone_before_it_is_ready_is_said_so(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def reset(*_: object) -> None:
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

    monkeypatch.setattr(guarding.select, "select", reset)
    with pytest.raises(DeviceOpenError, match="the guardian of it did not start"):
        post.guard()


@pytest.mark.parametrize("script", [guardian.__file__, reattaching.__file__])
def test_needs_nothing_but_the_standard_library(script: str) -> None:
    code = f"import runpy; runpy.run_path({script!r})"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=60).returncode == 0
