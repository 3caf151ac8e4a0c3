"""A pantograph that makes up for its own friction: what its motors give, and what its data sheet says then."""

import numpy as np
import pytest

import devices
from haptics.errors import ConfigurationError
from tests.devices.pantograph.boards import driven, wait_until

LEVEL, SHARE = 0.4, 0.75


@pytest.fixture
def own_file(tmp_path):
    """Coulomb's friction in both axes, as found on a pantograph of the first generation on whatever port."""
    path = tmp_path / "own.toml"
    axis = "[joint.{0}.friction]\nmodel = 'coulomb-viscous'\ncoulomb_force_n = {1}\nviscosity_ns_per_m = 0.1\n"
    path.write_text(axis.format("x", LEVEL) + axis.format("y", LEVEL))
    return str(path)


@pytest.mark.wall_clock  # driver and board exchange by the wall's clock, in threads of their own
def test_the_motors_add_what_friction_takes_once_it_is_allowed(board, own_file):
    with driven(board, friction_parameters=own_file, compensation=SHARE) as device:

        def shown(speed):
            device.read()
            device._state.velocity[:] = speed, 0.0  # as if the handle moved
            device.write(np.array((0.0, 0.2)))
            return board.force

        wait_until(lambda: abs(shown(0.1)[1] - 0.2) < 0.02)
        assert abs(shown(0.1)[0]) < 0.02
        device.compensate(1.0)
        added = SHARE * (LEVEL + 0.1 * 0.1)
        wait_until(lambda: abs(shown(0.1)[0] - added) < 0.02)
        device.compensate(0.0)
        wait_until(lambda: abs(shown(0.1)[0]) < 0.02)


def test_the_spec_says_what_is_left(own_file):
    own = {"emulated": True, "friction_parameters": own_file, "compensation": SHARE}
    spec = devices.create_device("pantograph", own).spec
    assert spec.least_friction == pytest.approx((1.0 - SHARE) * LEVEL)
    assert spec.damping == pytest.approx(0.5 - 0.1)


def test_a_file_of_another_device_is_refused(tmp_path):
    path = tmp_path / "other.toml"
    path.write_text("[provenance]\ndevice = 'virtual-joystick virtual, seed 1'\n[joint.x]\n")
    with pytest.raises(ConfigurationError, match="is of the device 'virtual-joystick virtual, seed 1'"):
        devices.create_device("pantograph", {"emulated": True, "friction_parameters": str(path)})
