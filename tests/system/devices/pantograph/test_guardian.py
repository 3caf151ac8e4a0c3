"""The guardian of the motors: what it does when the driver dies or stops, and that nothing goes on without it."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from devices.pantograph import guardian
from devices.pantograph.exchange import Exchange
from devices.pantograph.line import Line
from devices.pantograph.mechanisms import MECHANISMS
from devices.pantograph.ports import open_port
from devices.pantograph.wire import WireError
from haptics.errors import DeviceFault
from tests.devices.pantograph.boards import LONG, driver, exercise, wait_until
from tests.processes import ROOT

pytestmark = pytest.mark.wall_clock  # driver and board exchange by the wall's clock, in threads of their own

HOST = """
import sys, time, numpy as np, devices

device = devices.create_device("pantograph", {"port": sys.argv[1], "at_home": True, "hold": 0.05})
device.open()
print("open", flush=True)
while True:
    device.read()
    device.write(np.array((0.5, 0.3)))
    time.sleep(1e-3)
"""


@contextlib.contextmanager
def host(board):
    """A process that drives the board for ever; given when there is torque."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOST, board.port], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout.readline() == b"open\n"
            wait_until(lambda: any(board.torques))
            yield process
        finally:
            process.kill()


def test_without_a_guardian_a_dead_host_leaves_its_torques(board):
    """What the board itself does, and why there is a guardian."""
    port = open_port(board.port)
    line = Line(port, MECHANISMS["gen-1"])
    line.resynchronise()
    line.exchange((0.05, 0.05))
    os.close(port)
    wait_until(lambda: board._away)
    assert all(board.torques)


def test_killed_host_leaves_no_torque(board):
    with host(board) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)


def test_killed_host_leaves_no_torque_even_if_the_board_was_out_of_step(board):
    with host(board) as process:
        process.send_signal(signal.SIGSTOP)
        board.lose_request_byte(7)
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: board._lost_in is None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)


def test_stopped_host_leaves_no_torque_and_does_not_go_on_afterwards(board):
    with host(board) as process:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: board.torques == (0.0, 0.0))
        wait_until(lambda: board.firmware.device is None)
        process.send_signal(signal.SIGCONT)
        _, words = process.communicate(timeout=LONG)
        assert b"DeviceFault: pantograph: the guardian process is gone" in words
        wait_until(lambda: board.torques == (0.0, 0.0))


def test_without_its_guardian_the_driver_does_not_go_on(board):
    device = driver(board)
    device.open()
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    for pid in children:
        if b"guardian.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
    with pytest.raises(DeviceFault, match="guardian"):
        wait_until(lambda: exercise(device, 0.02))
    device.close()
    assert board.torques == (0.0, 0.0)


def test_guardian_needs_nothing_but_the_standard_library():
    code = f"import runpy; runpy.run_path({guardian.__file__!r})"
    assert subprocess.run([sys.executable, "-I", "-S", "-c", code], check=False, timeout=60).returncode == 0


class TakenBetween:
    """A guardian that takes over while an exchange is under way, and the line that is torn by it."""

    def __init__(self, error):
        self.angles = (0.0, 0.0)
        self.told = []
        self._error, self._beats = error, 0

    def beat(self):
        self._beats += 1
        return self._beats == 1

    def exchange(self, torques):
        raise self._error

    def resynchronise(self):
        self.told.append("resynchronise")


@pytest.mark.parametrize(
    "error", [BlockingIOError(errno.EAGAIN, "the guardian read the answer"), WireError("no answer")]
)
def test_a_guardian_that_takes_over_in_an_exchange_is_named_and_the_port_is_left_to_it(error):
    torn = TakenBetween(error)
    exchange = Exchange(torn, torn, pause=1e-3, watchdog=0.5, resyncs=3)
    exchange.start()
    wait_until(lambda: exchange.failure)
    exchange.stop()
    assert exchange.failure.startswith("the guardian process is gone")
    assert torn.told == []
