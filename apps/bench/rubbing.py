"""Benchmark ``mujoco``: exact friction as a callback in MuJoCo, compared with MuJoCo's friction.

A box of 2 kg is on a table with 4 N of dry friction. It is pushed with 0.9 of the friction, where it should not move,
and then slides. The results are its creep speed, its sliding force, and the time of a step as a ratio to the same scene
without friction.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from apps.bench.outcome import CannotMeasure, Outcome, Progress, table
from apps.bench.slices import compare, measure, nanoseconds
from haptics.elements.models import RigidAdmittance
from haptics.friction.laws import Coulomb

TITLE = "exact friction as a callback in MuJoCo, beside MuJoCo's own: creep, sliding force, time of a step as a ratio"

MASS, FRICTION, PERIOD, GRAVITY = 2.0, 4.0, 1e-3, 9.81
SHARE = 0.9
"""Push relative to the friction."""

_ROUNDS, _STEPS = 60, 500
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


def run(progress: Progress) -> Outcome:
    """Measure all friction models."""
    if importlib.util.find_spec("mujoco") is None:
        raise CannotMeasure("mujoco is not installed: pip install mujoco")
    rows = []
    for done, way in enumerate(WAYS[1:]):
        progress(done / len(WAYS), way.name)
        rows.append(_row(way))
    heading = ("friction", "creep um/s", "slides at N", "ns/step", "ratio", "spread")
    keys = ("friction", "creep_um_s", "sliding_n", "ns_per_step", "ratio", "spread")
    version = importlib.metadata.version("mujoco")
    text = f"{table([heading, *([row[key] for key in keys] for row in rows)])}\nMuJoCo {version}; ratio to no friction"
    return Outcome({"version": version, "reference": WAYS[0].name, "rows": rows}, text)


def _row(way: Way) -> dict[str, Any]:
    creep, sliding = behaviour(way)
    times = measured(way)
    ratio = compare(times[:, 1], times[:, 0])
    return {
        "friction": way.name,
        "creep_um_s": 1e6 * creep,
        "sliding_n": sliding,
        "ns_per_step": nanoseconds(times[:, 1], _STEPS),
        "ratio": ratio.median,
        "spread": ratio.spread,
    }


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


def measured(way: Way) -> np.ndarray:
    """Return the times of slices of `_STEPS` steps without and with friction, (rounds, 2) [s]."""
    mujoco: Any = importlib.import_module("mujoco")
    with _scene(WAYS[0]) as (bare_model, bare), _scene(way) as (model, data):
        data.qfrc_applied[0] = SHARE * FRICTION  # the box without friction is not pushed, because nothing would hold it
        return measure(
            [lambda: mujoco.mj_step(bare_model, bare, _STEPS), lambda: mujoco.mj_step(model, data, _STEPS)], _ROUNDS
        )


@contextlib.contextmanager
def _scene(way: Way) -> Iterator[tuple[Any, Any]]:
    """Create model and data of the box on its table."""
    from haptics.mujoco import PassiveFriction

    mujoco: Any = importlib.import_module("mujoco")
    level, directions = FRICTION / (MASS * GRAVITY), 3 if way.contacts else 1
    rubs = f'condim="{directions}" friction="{level} 0 0"'
    joints = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{PERIOD}" gravity="0 0 -{GRAVITY}" {way.options}/><worldbody>'
        f'<geom type="plane" size="9 9 .1" {rubs}/><body pos="0 0 .02">{joints}'
        f'<geom type="box" size=".05 .05 .02" mass="{MASS}" {rubs}/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    if not way.exact:
        yield model, data
        return
    with PassiveFriction(model, data, RigidAdmittance(Coulomb(FRICTION), MASS, PERIOD)):
        yield model, data
