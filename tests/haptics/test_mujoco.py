"""Friction in MuJoCo: a mass moves as model A, sticks exactly, and unsuitable models are refused."""

import numpy as np
import pytest

from haptics import ConfigurationError, Coulomb, RigidAdmittance, Stribeck, simulate

mujoco = pytest.importorskip("mujoco")

from haptics.mujoco import PassiveFriction  # noqa: E402

MASS, PERIOD = 2.0, 1e-3
LAWS = (Coulomb(4.0), Stribeck(3.0, 4.5, 0.02))


def plane(options="", joint=""):
    """Return a mass that slides in a plane, and nothing else."""
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{PERIOD}" gravity="0 0 0" {options}/><worldbody><body>'
        f'<joint type="slide" axis="1 0 0" {joint}/><joint type="slide" axis="0 1 0" {joint}/>'
        f'<geom type="sphere" size=".05" mass="{MASS}"/></body></worldbody></mujoco>'
    )
    return model, mujoco.MjData(model)


def block(law=LAWS[0], **changes):
    return RigidAdmittance(law, **{"mass": MASS, "period": PERIOD, **changes})


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_mass_moves_as_model_a(law):
    random = np.random.default_rng(4)
    pushes = np.tile([6.0, 1.0, 1.0], 20)[:, None] * random.uniform(-1.0, 1.0, (60, 2))
    forces = np.repeat(pushes, 25, axis=0)
    expected = simulate(block(law), forces)
    model, data = plane()
    velocities, sticks = np.empty_like(forces), np.empty(len(forces), bool)
    with PassiveFriction(model, data, block(law)) as contact:
        for tick, force in enumerate(forces):
            data.qfrc_applied[:] = force
            mujoco.mj_step(model, data)
            velocities[tick], sticks[tick] = data.qvel, contact.sticking
    assert 0.05 < sticks.mean() < 0.95
    np.testing.assert_array_equal(sticks, expected.sticking)
    np.testing.assert_allclose(velocities, expected.velocity, atol=1e-12)


def test_mass_sticks_below_its_friction():
    model, data = plane(joint='stiffness="100" springref="0.02"')  # pulls with 2 N on each axis
    with PassiveFriction(model, data, block()) as contact:
        data.qfrc_applied[:] = 0.6, 0.6
        mujoco.mj_step(model, data, 1000)
        assert contact.sticking
        assert np.abs(data.qvel).max() < 1e-15
        assert contact.friction_force == pytest.approx((2.6, 2.6))
        data.qfrc_applied[:] = 1.2, 1.2
        mujoco.mj_step(model, data)
        assert not contact.sticking


def test_other_models_are_unaffected():
    (model, data), (other_model, other) = plane(), plane()
    with PassiveFriction(model, data, block()):
        other.qvel[:] = 0.3, 0.0
        mujoco.mj_step(other_model, other, 100)
        assert other.qvel[0] == 0.3
    data.qvel[:] = 0.3, 0.0
    mujoco.mj_step(model, data, 100)
    assert data.qvel[0] == 0.3


def test_only_one_contact_per_process():
    model, data = plane()
    with PassiveFriction(model, data, block()), pytest.raises(ConfigurationError, match="one in a process"):
        PassiveFriction(model, data, block()).__enter__()
    with PassiveFriction(model, data, block()):
        pass


@pytest.mark.parametrize(
    ("options", "joint", "element", "dofs", "told"),
    [
        ('integrator="RK4"', "", block(), (0, 1), "integrator"),
        ("", 'damping="1"', block(), (0, 1), "damping"),
        ("", "", block(mass=1.0), (0, 1), "mass = 1 kg"),
        ("", "", block(period=2e-3), (0, 1), "timestep"),
        ("", "", block(), (1, 2), "neighbours"),
        ("", "", block(), (1, 0), "neighbours"),
    ],
)
def test_unsuitable_model_is_refused(options, joint, element, dofs, told):
    model, data = plane(options, joint)
    with pytest.raises(ConfigurationError, match=told):
        PassiveFriction(model, data, element, dofs)
