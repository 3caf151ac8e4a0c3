"""A driver that is killed or stopped while its motors are driven: the drive's watchdogs let go of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devices.arm.motors import OdriveStage
from devices.emulators.odrive.axis import CLOSED_LOOP, IDLE
from devices.emulators.odrive.child import spawn
from devices.emulators.odrive.remote import RemoteBackend
from haptics.errors import ConfigurationError, DeviceFault
from tests.devices.arm.odrive_rig import HOME, run

PATIENCE = 30.0

DRIVER = """
import contextlib, sys, time
import numpy as np
from devices.arm.motors import OdriveStage
from devices.emulators.odrive.child import spawn
from devices.emulators.odrive.remote import RemoteBackend

where = sys.argv[1]
with spawn({"log": where}) if where.endswith(".json") else contextlib.nullcontext(where) as address:
    with OdriveStage({"watchdog": 0.2, "reply_timeout": 0.3}, backend=RemoteBackend(address)) as stage:
        stage.home(np.zeros(2))
        stage.arm()
        ticks = 0
        while True:
            stage.tick(np.zeros(2))
            ticks += 1
            if ticks == 50:
                print("driven", flush=True)
            time.sleep(1e-3)
"""


@contextmanager
def driver(where: str) -> Iterator[subprocess.Popen[str]]:
    """Run a driver in a process of its own, until it drives."""
    root = str(Path(__file__).parents[4])
    command = [sys.executable, "-c", DRIVER, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "driven\n"
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], bool]) -> float:
    """Return how long it took until it was so."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < PATIENCE
        time.sleep(5e-3)
    return time.monotonic() - start


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteBackend]:
    with pytest.MonkeyPatch.context() as patch, spawn({}) as address:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield RemoteBackend(address)


def test_killed_the_watchdogs_let_go_and_the_next_driver_can_have_the_drive(far: RemoteBackend) -> None:
    with driver(far._address) as process:
        assert far.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: far.observe()["states"] == [IDLE, IDLE])
        assert far.observe()["errors"] == [0x800, 0x800]
        assert far.observe()["torques"] == [0.0, 0.0]
    with OdriveStage({"watchdog": 0.5, "reply_timeout": 0.1}, backend=far) as stage:
        stage.home(HOME)
        stage.arm()
        run(stage, 0.05)
        assert far.observe()["states"] == [CLOSED_LOOP, CLOSED_LOOP]
    assert far.observe()["states"] == [IDLE, IDLE]


def test_stopped_the_watchdogs_let_go_and_when_it_wakes_up_it_is_told(far: RemoteBackend) -> None:
    with driver(far._address) as process:
        os.kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: far.observe()["states"] == [IDLE, IDLE])
        assert far.observe()["errors"] == [0x800, 0x800]
        os.kill(process.pid, signal.SIGCONT)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1, said
        assert said.splitlines()[-1].startswith("haptics.errors.DeviceFault: "), said
        assert "the watchdog expired" in said, said
    assert far.observe()["states"] == [IDLE, IDLE]


def test_a_fault_in_the_other_process_is_a_fault_here(far: RemoteBackend) -> None:
    stage = OdriveStage({"watchdog": 0.5, "reply_timeout": 0.1}, backend=far)
    stage.open()
    stage.home(HOME)
    stage.arm()
    run(stage, 0.02)
    far.fault("unplug")
    with pytest.raises(DeviceFault, match="unplugged"):
        run(stage, PATIENCE)
    with pytest.raises(DeviceFault, match="Their own watchdog"):
        stage.close()
    far.clear("unplug")
    with stage:
        assert not stage.homed


def test_an_emulated_drive_outlives_who_started_it_and_says_what_became_of_the_motors(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    with driver(str(log)) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(log.exists)
    wait_for(lambda: bool(log.read_text()))
    end = json.loads(log.read_text())
    assert (end["states"], end["errors"], end["torques"]) == ([IDLE, IDLE], [0x800, 0x800], [0.0, 0.0])


@pytest.mark.parametrize(
    ("table", "message"),
    [({"faults": ["nonsense@1"]}, "unknown fault"), ({"plant": "no_such_module:f"}, "no_such_module")],
)
def test_one_that_cannot_be_built_says_why(table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message), spawn(table):
        pass


def test_a_plant_of_one_s_own_is_turned() -> None:
    maker = {"plant": "devices.emulators.odrive.plant:Flywheels", "plant_settings": {"inertia": 4e-4}}
    with spawn(maker) as address:
        assert RemoteBackend(address).observe()["angles"] == [0.0, 0.0]
