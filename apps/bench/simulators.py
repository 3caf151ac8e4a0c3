"""Other simulators on the task of model A: a mass of 2 kg on a surface with 4 N of dry friction.

They are general simulators for many bodies in contact, and compute more per step than this task needs. The benchmark
only compares the cost of one mass with friction. Each simulator runs with its default settings, through its fastest
interface for many steps, with the same forces and period as model A.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.bench.loop import empty_results, own_loop
from apps.bench.outcome import table
from apps.bench.slices import compare, measure, nanoseconds, repeated
from apps.bench.workload import PERIOD, STEPS, inputs, plainest
from haptics.device import Causality

_ROUNDS = 25
_REPEATS = 20
"""Runs of model A per slice. A single run would mainly measure cache misses."""

_MASS, _FRICTION = 2.0, 4.0

Loop = Callable[[], object]


def _mujoco(forces: NDArray[np.float64]) -> Loop:
    mujoco, rollout = importlib.import_module("mujoco"), importlib.import_module("mujoco.rollout")
    axes = {"x": "1 0 0", "y": "0 1 0"}
    joints = "".join(f"<joint name='{n}' type='slide' axis='{a}' frictionloss='{_FRICTION}'/>" for n, a in axes.items())
    motors = "".join(f"<motor joint='{n}'/>" for n in axes)
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option timestep='{PERIOD}' gravity='0 0 0'/><worldbody><body>{joints}"
        f"<geom type='sphere' size='0.05' mass='{_MASS}'/></body></worldbody><actuator>{motors}</actuator></mujoco>"
    )
    data = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    start = np.empty(size)
    mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.empty((1, len(forces), size))

    def run() -> None:
        rollout.rollout(model, data, start[None], forces[None], state=states)

    return run


def _pymunk(forces: NDArray[np.float64]) -> Loop:
    pymunk = importlib.import_module("pymunk")
    pairs = [(float(x), float(y)) for x, y in forces]

    def run() -> list[Any]:
        space = pymunk.Space()
        body = pymunk.Body(_MASS, 1.0)
        friction = pymunk.PivotJoint(space.static_body, body, (0.0, 0.0), (0.0, 0.0))
        friction.max_bias, friction.max_force = 0.0, _FRICTION  # as for a body seen from above
        space.add(body, friction)
        velocities = []
        for pair in pairs:
            body.force = pair
            space.step(PERIOD)
            velocities.append(body.velocity)
        return velocities

    return run


@dataclass(frozen=True)
class Simulator:
    """Other simulator.

    Attributes
    ----------
    package : str
        Name of the package.
    how : str
        Description of the measured task.
    make : callable
        Takes forces, (n, 2) [N], and returns a function that runs them.
    """

    package: str
    how: str
    make: Callable[[NDArray[np.float64]], Loop]


SIMULATORS = (
    Simulator("mujoco", "two slide joints with frictionloss, whole run in one call", _mujoco),
    Simulator("pymunk", "a pivot joint with a largest force, one call a step", _pymunk),
)


def measured() -> list[dict[str, Any]]:
    """Measure the installed simulators and model A with Coulomb's law."""
    return [_measured(simulator) for simulator in SIMULATORS]


def text(rows: list[dict[str, Any]]) -> str:
    """Format the rows of `measured` as a table."""
    heading = ("package", "version", "ns/step", "A ns/step", "times faster", "spread", "what is measured")
    keys = ("package", "version", "ns_per_step", "element_ns_per_step", "times_faster", "spread", "remark")
    return table([heading, *([row[key] for key in keys] for row in rows)])


def _measured(simulator: Simulator) -> dict[str, Any]:
    row: dict[str, Any] = {"package": simulator.package}
    if importlib.util.find_spec(simulator.package) is None:
        missing = dict.fromkeys(("version", "ns_per_step", "element_ns_per_step", "times_faster", "spread"))
        return {**row, **missing, "remark": f"not installed: pip install {simulator.package}"}
    element = plainest(Causality.ADMITTANCE)
    own = own_loop(element, empty_results())
    times = measure([simulator.make(inputs(element.causality)), repeated(own, _REPEATS)], _ROUNDS)
    times[:, 1] /= _REPEATS
    faster = compare(times[:, 0], times[:, 1])
    return {
        **row,
        "version": importlib.metadata.version(simulator.package),
        "ns_per_step": nanoseconds(times[:, 0], STEPS),
        "element_ns_per_step": nanoseconds(times[:, 1], STEPS),
        "times_faster": faster.median,
        "spread": faster.spread,
        "remark": simulator.how,
    }
