"""`device.wire_faults`: what goes wrong on the emulated bus, by settings alone, in a device and in a session."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from devices import create_device
from devices.emulated.joystick import EmulatedPidJoystick
from devices.joystick.device import PidJoystick
from haptics.errors import ConfigurationError, DeviceFault, DeviceNotFoundError
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.devices.joystick.doubles import STILL
from tests.processes import RUN, program

pytestmark = [
    pytest.mark.wall_clock,
    pytest.mark.usefixtures("compiled"),
]  # a stick in this process

PULLED, AWAY = 0.5, 0.3
"""When the plug is pulled and for how long [s]."""


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ("unplug@1", r"device\.wire_faults = 'unplug@1': must be a list of texts NAME@SECONDS"),
        ([1.0], r"device\.wire_faults = \[1\.0\]: must be a list of texts"),
        (["unplugged@1"], r"fault of the wire in 'unplugged@1'.*unplug"),
        (["unplug"], r"fault of the wire 'unplug': must have the form NAME@SECONDS"),
        (["unplug@1+0"], r"fault of the wire unplug@1\+0: must last longer than 0 s"),
    ],
)
def test_a_wrong_fault_is_named(faults: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        EmulatedPidJoystick({"emulated": True, "wire_faults": faults})


def test_a_real_wire_has_no_faults_on_demand() -> None:
    with pytest.raises(ConfigurationError, match=r"device\.wire_faults = \['unplug@1'\]: only an emulated stick"):
        create_device("pid-joystick", {"wire_faults": ["unplug@1"]})


def use(device: PidJoystick, force: float) -> None:
    device.read()
    device.write(np.array((force, 0.0)))
    time.sleep(1e-3)


def test_a_stick_that_is_pulled_out_and_put_back_can_be_opened_again() -> None:
    device = EmulatedPidJoystick({"emulated": True, "hand": STILL, "wire_faults": [f"unplug@{PULLED}+{AWAY}"]})
    device.open()
    stick = device.backend.sticks[0]
    with pytest.raises(DeviceFault, match="the stick was unplugged"):
        while stick.now < PULLED + AWAY:
            use(device, 1.0)
    device.close()
    with pytest.raises(DeviceNotFoundError, match="no force-feedback stick is plugged in"):
        device.open()
    time.sleep(max(PULLED + AWAY - stick.now, 0.0) + 0.01)
    with device:
        for _ in range(50):
            use(device, 1.0)
        np.testing.assert_allclose(stick.force, (1.0, 0.0), atol=0.02)
    assert not stick.force.any()


def test_a_session_whose_stick_is_pulled_out_ends_with_status_4_and_its_recording(tmp_path: Path) -> None:
    settings = {
        "device.emulated": "true",
        "device.wire_faults": '["unplug@1"]',
        "element.stiffness": "600",
        "element.damping": "2",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    where = ("--headless", "--record", str(tmp_path), "--device", "pid-joystick", "--duration", "60")
    with program(*RUN, *where, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=100)
    assert process.returncode == 4, err
    answer = json.loads(out)
    tick = int(answer["error"].removeprefix("pid-joystick failed at tick ").partition(":")[0])
    assert answer["error"].endswith(": the stick was unplugged, or lost its power: plug it in and start again.")
    assert "the stick was unplugged" in err
    assert "Traceback" not in err
    assert (answer["reason"], answer["lost_ticks"]) == ("fault", 0)
    recording = Recording(Path(answer["recording"]))
    assert len(recording.rows) == answer["ticks"] > 100
    assert tick in (recording.rows["tick"][-1], recording.rows["tick"][-1] + 1)
    assert verify(recording).mismatches == 0
