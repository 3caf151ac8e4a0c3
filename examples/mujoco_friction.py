"""Exact friction in MuJoCo, as a callback that needs no interpreter (``pip install mujoco``).

A box of 2 kg is pushed with 0.9 of its friction, and should stay where it is; then it sticks and slips behind a spring
under a Stribeck law, which MuJoCo does not have. Usage: ``python examples/mujoco_friction.py``
"""

import mujoco
import numpy as np

from haptics import Coulomb, RigidAdmittance, Stribeck
from haptics.mujoco import PassiveFriction

MASS, FRICTION, PERIOD = 2.0, 4.0, 1e-3
SLIDES = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
OWN = {
    "elliptic cone": 'cone="elliptic"',
    "elliptic cone, noslip 10": 'cone="elliptic" noslip_iterations="10"',
}


def box(options: str, directions: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a box on a table, whose contacts rub if they have 3 `directions` and do not if they have 1."""
    rubs = f'condim="{directions}" friction="{FRICTION / (MASS * 9.81)} 0 0"'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{PERIOD}" gravity="0 0 -9.81" {options}/><worldbody>'
        f'<geom type="plane" size="9 9 .1" {rubs}/><body pos="0 0 .02">{SLIDES}<joint type="slide" axis="0 0 1"/>'
        f'<geom type="box" size=".05 .05 .02" mass="{MASS}" {rubs}/></body></worldbody></mujoco>'
    )
    return model, mujoco.MjData(model)


def creep(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return how fast the box moves under 0.9 of its friction [um/s]."""
    data.qfrc_applied[0] = 0.9 * FRICTION
    mujoco.mj_step(model, data, 3000)
    before = data.qpos[0]
    mujoco.mj_step(model, data, 3000)
    return 1e6 * (data.qpos[0] - before) / (3000 * PERIOD)


for name, options in OWN.items():
    print(f"{name}: creeps at {creep(*box(options, 3)):.6f} um/s")

model, data = box("", 1)
with PassiveFriction(model, data, RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)) as contact:
    print(f"exact: creeps at {creep(model, data):.6f} um/s, sticks: {contact.sticking}")

model, data = box("", 1)
falling = Stribeck(kinetic_force=3.0, static_force=4.5, stribeck_velocity=0.02)
with PassiveFriction(model, data, RigidAdmittance(falling, MASS, PERIOD)) as contact:
    forces = np.empty(6000)
    for tick in range(len(forces)):
        data.qfrc_applied[0] = 150.0 * (0.05 * tick * PERIOD - data.qpos[0])  # a spring that is drawn along
        mujoco.mj_step(model, data)
        forces[tick] = contact.friction_force[0]
slips = int(np.sum((forces[:-1] > 4.4) & (forces[1:] < forces[:-1] - 0.02)))
print(f"Stribeck: friction from {forces[1000:].min():.2f} to {forces.max():.2f} N, breaks away {slips} times")
