"""Comparison with other simulators: one mass with dry friction, and exact friction in MuJoCo.

They are general simulators for many bodies in contact, and compute more per step than this task needs. Part of the
benchmark ``kernel`` is model A's task, a mass of 2 kg on a surface with 4 N of dry friction: each simulator runs with
its default settings, through its fastest interface for many steps, with the same forces and period as model A.

The benchmark ``mujoco`` compares exact friction as a callback in MuJoCo with MuJoCo's friction. A box of 2 kg is on a
table with 4 N of dry friction. It is pushed with 0.9 of the friction, where it should not move, and then slides. The
results are its creep speed, its sliding force, and the time of a step as a ratio to the same scene without friction.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import CannotMeasure, Progress, table_of
from apps.bench.workload import (
    PERIOD,
    STEPS,
    compare,
    empty_results,
    inputs,
    measure,
    nanoseconds,
    own_loop,
    plainest,
    repeated,
)
from apps.shared.command import Answer
from haptics.device import Causality
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb

_ROUNDS = 25
_REPEATS = 20
"""Runs of model A per slice. A single run would mainly measure cache misses."""

MASS, FRICTION = 2.0, 4.0

Loop = Callable[[], object]


def _mujoco(forces: NDArray[np.float64]) -> Loop:
    mujoco, rollout = importlib.import_module("mujoco"), importlib.import_module("mujoco.rollout")
    axes = {"x": "1 0 0", "y": "0 1 0"}
    joints = "".join(f"<joint name='{n}' type='slide' axis='{a}' frictionloss='{FRICTION}'/>" for n, a in axes.items())
    motors = "".join(f"<motor joint='{n}'/>" for n in axes)
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><option timestep='{PERIOD}' gravity='0 0 0'/><worldbody><body>{joints}"
        f"<geom type='sphere' size='0.05' mass='{MASS}'/></body></worldbody><actuator>{motors}</actuator></mujoco>"
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
        body = pymunk.Body(MASS, 1.0)
        friction = pymunk.PivotJoint(space.static_body, body, (0.0, 0.0), (0.0, 0.0))
        friction.max_bias, friction.max_force = 0.0, FRICTION  # as for a body seen from above
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


COLUMNS = {
    "package": "package",
    "version": "version",
    "ns_per_step": "ns/step",
    "element_ns_per_step": "A ns/step",
    "times_faster": "times faster",
    "spread": "spread",
    "remark": "what is measured",
}
"""Columns of the table of `measured` simulators."""


def measured(simulator: Simulator) -> dict[str, Any]:
    """Measure a simulator, if it is installed, and model A with Coulomb's law."""
    row: dict[str, Any] = {"package": simulator.package}
    if importlib.util.find_spec(simulator.package) is None:
        return {**dict.fromkeys(COLUMNS), **row, "remark": f"not installed: pip install {simulator.package}"}
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
        "times_faster": faster["ratio"],
        "spread": faster["spread"],
        "remark": simulator.how,
    }


# --- benchmark ``mujoco`` ------------------------------------------------------------------------------------------

GRAVITY = 9.81
SHARE = 0.9
"""Push relative to the friction."""

_SCENE_ROUNDS, _STEPS = 60, 500
_SETTLING, _PUSHING = 500, 3000
"""Steps until the box is at rest, and steps during which it is pushed."""

_SLIDING = 0.5
"""Initial speed of the sliding box [m/s]."""


@dataclass(frozen=True)
class Way:
    """Friction model in MuJoCo.

    Attributes
    ----------
    name : str
        Label.
    options : str
        Attributes of MuJoCo's ``option``.
    contacts : bool
        Whether MuJoCo's contacts have friction.
    exact : bool
        Whether our callback adds friction.
    """

    name: str
    options: str = ""
    contacts: bool = False
    exact: bool = False


WAYS = (
    Way("no friction"),
    Way("exact, by a callback", exact=True),
    Way("pyramidal cone", 'cone="pyramidal"', contacts=True),
    Way("elliptic cone", 'cone="elliptic"', contacts=True),
    Way("elliptic cone, noslip 10", 'cone="elliptic" noslip_iterations="10"', contacts=True),
)
"""Compared friction models; the first is the reference."""


_SCENE_COLUMNS = {
    "friction": "friction",
    "creep_um_s": "creep um/s",
    "sliding_n": "slides at N",
    "ns_per_step": "ns/step",
    "ratio": "ratio",
    "spread": "spread",
}


def run_mujoco(progress: Progress) -> Answer:
    """Measure all friction models."""
    if importlib.util.find_spec("mujoco") is None:
        raise CannotMeasure("mujoco is not installed: pip install mujoco")
    rows = []
    for done, way in enumerate(WAYS[1:]):
        progress(done / len(WAYS), way.name)
        creep, sliding = behaviour(way)
        times = step_times(way)
        rows.append(
            {
                "friction": way.name,
                "creep_um_s": 1e6 * creep,
                "sliding_n": sliding,
                "ns_per_step": nanoseconds(times[:, 1], _STEPS),
                **compare(times[:, 1], times[:, 0]),
            }
        )
    version = importlib.metadata.version("mujoco")
    text = f"{table_of(_SCENE_COLUMNS, rows)}\nMuJoCo {version}; ratio to no friction"
    return Answer({"version": version, "reference": WAYS[0].name, "rows": rows}, text)


def behaviour(way: Way) -> tuple[float, float]:
    """Return the creep speed [m/s] of the box under `SHARE` of its friction, and its sliding force [N]."""
    mujoco: Any = importlib.import_module("mujoco")
    with _scene(way) as (model, data):
        mujoco.mj_step(model, data, _SETTLING)
        data.qfrc_applied[0] = SHARE * FRICTION
        mujoco.mj_step(model, data, _PUSHING)
        before = data.qpos[0]
        mujoco.mj_step(model, data, _PUSHING)
        creep = float(data.qpos[0] - before) / (_PUSHING * PERIOD)
        data.qfrc_applied[0], data.qvel[0] = 0.0, _SLIDING
        mujoco.mj_step(model, data, 10)
        speed = data.qvel[0]
        mujoco.mj_step(model, data, 100)
        return creep, MASS * float(speed - data.qvel[0]) / (100 * PERIOD)


def step_times(way: Way) -> np.ndarray:
    """Return the times of slices of `_STEPS` steps without and with friction, (rounds, 2) [s]."""
    mujoco: Any = importlib.import_module("mujoco")
    with _scene(WAYS[0]) as (bare_model, bare), _scene(way) as (model, data):
        data.qfrc_applied[0] = SHARE * FRICTION  # the box without friction is not pushed, because nothing would hold it
        steps = [lambda: mujoco.mj_step(bare_model, bare, _STEPS), lambda: mujoco.mj_step(model, data, _STEPS)]
        return measure(steps, _SCENE_ROUNDS)


@contextlib.contextmanager
def _scene(way: Way) -> Iterator[tuple[Any, Any]]:
    """Create model and data of the box on its table."""
    from haptics.mujoco import PassiveFriction

    mujoco: Any = importlib.import_module("mujoco")
    level, directions = FRICTION / (MASS * GRAVITY), 3 if way.contacts else 1
    contact = f'condim="{directions}" friction="{level} 0 0"'
    joints = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{PERIOD}" gravity="0 0 -{GRAVITY}" {way.options}/><worldbody>'
        f'<geom type="plane" size="9 9 .1" {contact}/><body pos="0 0 .02">{joints}'
        f'<geom type="box" size=".05 .05 .02" mass="{MASS}" {contact}/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    if not way.exact:
        yield model, data
        return
    with PassiveFriction(model, data, RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)):
        yield model, data
