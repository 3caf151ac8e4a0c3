"""Force scale of a Falcon: the weighing in simulated time, on a joystick whose motors are weaker than commanded."""

import functools

import numpy as np
import pytest

from calibration.falcon import HANG, RELEASE, TAKE_OFF, Weighing
from calibration.joystick.person import GRAVITY
from calibration.motions import Mover, drive
from devices.virtual.joystick import VirtualJoystick
from haptics.errors import ConfigurationError, HapticError

WEIGHT, OWN = 0.2, 0.05
HUNG = 5.2


class WeakJoystick(VirtualJoystick):
    def __init__(self, settings, *, clock, strength):
        super().__init__(settings, clock=clock)
        self.strength = strength

    def write(self, command):
        super().write(self.strength * np.asarray(command))


def make(strength, load, more, clock):
    own = -OWN * GRAVITY
    script = [[0.0, 0.0, own], [HUNG, 0.0, own], [HUNG + 0.5, load[0] * GRAVITY, load[1] * GRAVITY + own]]
    table = {"hand": {"name": "scripted-force", "script": script}, "mass": 0.2, "max_force": 5.0}
    return WeakJoystick(table | dict(more), clock=clock, strength=strength)


def weigh(tmp_path, strength=0.8, load=(0.0, -WEIGHT)):
    asked = []
    weighing = Weighing(asked.append, WEIGHT, 5.0, 1e-3)
    mover = Mover(functools.partial(make, strength, load), live=False, device={"name": "virtual-joystick"})
    drive(mover, weighing.carry(), tmp_path / "weight", {})
    assert asked == [RELEASE, HANG, TAKE_OFF]
    return weighing


@pytest.mark.parametrize("strength", [0.8, 1.25])
def test_scale_is_that_of_the_motors(tmp_path, strength):
    weighing = weigh(tmp_path, strength)
    assert weighing.motor_scale(10_000.0) == pytest.approx(10_000.0 / strength, rel=0.01)
    assert weighing.forces[0][1] == pytest.approx(OWN * GRAVITY / strength, rel=0.02)


@pytest.mark.parametrize("load", [(0.0, 0.0), (0.0, 0.1), (0.1, -0.1)])
def test_other_load_than_the_weight_is_refused(tmp_path, load):
    with pytest.raises(ConfigurationError, match="which is not upwards"):
        weigh(tmp_path, load=load).motor_scale(10_000.0)


def test_too_weak_motors_and_wrong_weights_are_told(tmp_path):
    with pytest.raises(HapticError, match=r"too weak for this weight|did not follow its motion"):
        weigh(tmp_path, strength=0.3)
    with pytest.raises(ConfigurationError, match=r"--weight = 2: must be from 0\.05 to 0\.4 kg"):
        Weighing(lambda _: None, 2.0, 5.0, 1e-3)
