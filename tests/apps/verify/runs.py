"""Honest recordings of all kinds, planned by a seeded program and made without processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apps.session.record import journal_entry, new_recorder
from apps.settings.config import complete
from devices.faults import create_faulty, parse_fault
from haptics.clock import Clock
from haptics.errors import HapticError
from haptics.recording.recorder import RunCloser
from haptics.servo.control import Supervision
from haptics.servo.kernels import CONTROL
from haptics.servo.servo import Servo
from haptics.shared import Mailbox
from haptics.trace import Reader, Trace

RUBBER = """
def rubber(speed, static=4.0, kinetic=3.0, width=0.1):
    peak = static - kinetic
    if speed < 0.5 * width:
        return kinetic + peak / (1.0 + speed / width)
    return kinetic + peak / (1.0 + speed / width) + 0.4 * math.tanh(speed - 0.5 * width)
"""

STEPS = """
def steps(speed, low=2.0, high=3.0):
    level = low if speed < 0.03 and not speed > 1e3 else high
    level += min(0.5 * abs(speed), 0.4, math.exp(-speed)) * (speed >= 0.06)
    return max(level, 0.1)
"""


def law(kind, **parameters):
    return {"name": kind, **parameters}


LAWS: dict[str, dict[str, Any]] = {
    "coulomb": law("coulomb", force=2.5),
    "weak": law("coulomb", force=0.4),
    "viscous": law("coulomb-viscous", force=1.5, viscosity=8.0),
    "stribeck": law("stribeck", kinetic_force=2.0, static_force=3.0, stribeck_velocity=0.2),
    "stribeck-viscous": law("stribeck", kinetic_force=1.0, static_force=2.0, stribeck_velocity=0.1, viscosity=4.0),
    "gaussian": law("gaussian-stribeck", kinetic_force=2.0, static_force=2.8, stribeck_velocity=0.15, viscosity=2.0),
    "dead-zone": law("dead-zone-viscous", force=1.5, viscosity=12.0, dead_zone=0.05),
    "elliptic": law("elliptic", force_x=3.0, force_y=1.5, angle=0.4, viscosity=2.0),
    "asymmetric": law("asymmetric", forward_force=3.0, backward_force=2.0, sideways_force=1.5, angle=-0.3),
    "rubber": law("custom", source=RUBBER, static=3.5),
    "steps": law("custom", source=STEPS),
    "closed-form": law("stribeck-closed-form", kinetic_force=2.0, static_force=2.2, stribeck_velocity=0.5),
}

ELEMENTS: dict[str, dict[str, float]] = {
    "A": {"mass": 2.0},
    "B": {"mass": 0.1, "stiffness": 4000.0, "damping": 8.0},
    "C": {"stiffness": 4000.0, "damping": 8.0},
    "D": {"mass": 2.0, "stiffness": 2e4, "damping": 400.0},
}


def tables_of(model, device=None, **tables):
    """Return the settings of a session with a model, by default on the virtual device of its causality."""
    device = device or ("virtual-arm" if model in "AD" else "virtual-joystick")
    return {"device": {"name": device}, "session": {"model": model}, "element": dict(ELEMENTS.get(model, {})), **tables}


@dataclass(frozen=True)
class Plan:
    """The plan of a recording.

    Attributes
    ----------
    tables : dict
        Settings of the session.
    ticks : int
        Length.
    changes : dict
        Changed settings by tick.
    shut : tuple of (int, int)
        First and last tick of each closure of the gate.
    skips : tuple of int
        Ticks that are 2.3 periods late.
    faults : tuple of str
        Faults of the device.
    """

    tables: dict[str, dict[str, Any]]
    ticks: int = 500
    changes: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    shut: tuple[tuple[int, int], ...] = ()
    skips: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def period(self):
        return 1.0 / float(self.tables["session"].get("rate", 1000.0))


class Lazy(Clock):
    """A clock with a known lateness, which misses two deadlines before some ticks."""

    def __init__(self, period, skips):
        super().__init__(period)
        self.skips, self.late = skips, 0.0

    def wait(self, tick):
        super().wait(tick)
        self.late = (2.3 if tick in self.skips else 0.09 * (tick % 7)) * self.period
        return self.late

    def elapsed(self):
        return self.time + self.late % self.period + 2e-5


def make(folder, plan):
    """Make the recording of a plan in a new folder; return the folder of the recording."""
    folder.mkdir(parents=True)
    session = {"duration": plan.ticks * plan.period, "record": str(folder / "recordings"), "seed": 5}
    config = complete({**plan.tables, "session": {**session, **plan.tables["session"]}})
    clock, trace = Lazy(plan.period, plan.skips), Trace.create(folder / "trace")
    lane = Mailbox(folder / "control", CONTROL, create=True)
    faults = [parse_fault(text) for text in plan.faults]
    device = create_faulty(config.device, config.device_settings, faults, 5, clock=clock)
    recorder = new_recorder(config, [])
    recorder.attach(Reader(trace))
    recorder.update_metadata(real_time={"scheduling": "other"})
    present, number, version = config, 0, 0

    def before_tick(_):
        nonlocal present, number, version
        lane.record["key_ns"] = 2**62 if clock.tick % 200 < 150 else 0
        lane.record["gate_closed"] = any(start <= clock.tick < stop for start, stop in plan.shut)
        tables = plan.changes.get(clock.tick)
        if tables is not None:
            following = present.with_tables(tables)
            number += following.session.model != present.session.model
            version, present = version + 1, following
            recorder.journal_settings(version, {**journal_entry(present), "program": number})
            servo.switch_program(present.program, number, version)

    supervision = Supervision(lane)
    servo = Servo(
        device, config.program, trace, clock=clock, limits=config.limits, supervision=supervision,
        before_tick=before_tick,
    )  # fmt: skip
    ending, reason = RunCloser(recorder, trace, lambda line: None), "completed"
    try:
        servo.run(plan.ticks * plan.period)
    except HapticError as error:
        ending.fail(error)
    recorder.drain()
    ending.close(reason, complete=True)
    planned = plan.ticks if ending.fault is None else None
    ending.certify(config.causality, fitness=config.fitness, planned=planned, granted={"scheduling": "other"})
    return recorder.folder


def _hand(choose, admittance):
    if choose.random() < (0.5 if admittance else 0.25):
        times = np.linspace(0.0, 1.0, 9)
        forces = choose.uniform(-8.0, 8.0, (9, 2)).round(2)
        forces[choose.integers(0, 9, 2)] = 0.0
        script = np.column_stack((times, forces)).tolist()
        return {"name": "scripted-force", "script": script}
    points = choose.uniform(-0.05, 0.05, (4, 2)).round(3).tolist()
    speed = round(float(choose.uniform(0.1, 0.9)), 2)
    return {"name": "minimum-jerk", "points": points, "pause": 0.02, "rest": 0.0, "speed": speed}


def _envelope(choose, admittance):
    """Return limits that intervene, or none."""
    options: list[dict[str, Any]] = [{}, {"max_force": 1.7}, {"max_force_rate": 200.0}, {"max_speed": 0.15}]
    options += [{"max_energy": 1e-6}, {"fade_in": 0.3, "max_force": 2.0, "max_speed": 0.2}]
    if admittance:
        options = [{}, {"max_speed": 0.05}, {"max_acceleration": 1.0}, {"max_energy": 1e-5}, {"fade_in": 0.3}]
        options.append({"max_speed": 0.08, "max_acceleration": 3.0})
    return dict(options[choose.integers(0, 6)])


CLASSICS: tuple[tuple[str, str], ...] = (
    *((model, "virtual-arm") for model in ("explicit-coulomb", "viscous-ramp", "karnopp", "quinn")),
    *((model, "virtual-joystick") for model in ("explicit-coulomb", "viscous-ramp", "karnopp", "quinn")),
    *((model, "virtual-joystick") for model in ("dahl", "lugre", "elastoplastic", "hayward-armstrong")),
    ("reset-integrator", "virtual-joystick"),
)
"""Classic models, and devices for them."""


def classic_plan(number):
    """Return a plan of a classic model with an isotropic law."""
    choose = np.random.default_rng((19, number))
    model, device = CLASSICS[number % len(CLASSICS)]
    names = [name for name in LAWS if name not in {"elliptic", "asymmetric"}]
    admittance = device == "virtual-arm"
    rate = float(choose.choice([1000.0, 2000.0]))
    law = dict(LAWS[names[(number // len(CLASSICS) + 3 * number) % len(names)]])
    tables = tables_of(model, device, law=law, hand=_hand(choose, admittance), envelope=_envelope(choose, admittance))
    tables["session"]["rate"] = rate
    law = {"law": dict(LAWS[str(choose.choice(names))])}
    changes = {int(choose.integers(50, 400)): law} if choose.random() < 0.4 else {}
    return Plan(tables, 500, changes, *_disturbances(choose))


_FAULTS = ("nan@0.2+0.01", "jump@0.3+0.003", "duplicate@0.1", "out-of-order@0.2", "late@0.1", "dropout@0.25+0.03",
           "stale@0.4", "stuck@0.2+0.05", "nan@0.3", "delay-5ms@0.2", "infinite@0.15+0.02")  # fmt: skip


def plan_of(number):
    """Return plan `number`: every law with every model in turn, with random disturbances."""
    choose = np.random.default_rng((18, number))
    model = "CABD"[number % 4]
    admittance = model in "AD"
    rate = float(choose.choice([1000.0, 1000.0, 1000.0, 500.0, 2000.0]))
    law = list(LAWS.values())[(number // 4) % len(LAWS)]
    tables = tables_of(model, law=law, hand=_hand(choose, admittance), envelope=_envelope(choose, admittance))
    tables["session"]["rate"] = rate
    if not admittance and choose.random() < 0.3:
        tables["envelope"]["passivity_control"] = True
        tables["element"]["stiffness"] = 16000.0
    if choose.random() < 0.25:
        tables["envelope"]["dead_man"] = "key" if choose.random() < 0.5 else "button"
    return Plan(tables, 500, _changes(choose, model), *_disturbances(choose))


def _disturbances(choose):
    shut = ((150, 280),) if choose.random() < 0.3 else ()
    if choose.random() < 0.15:
        shut = (*shut, (300, 310), (330, 331))
    skips = tuple(int(tick) for tick in choose.integers(10, 490, 3)) if choose.random() < 0.3 else ()
    faults = (str(choose.choice(_FAULTS)),) if choose.random() < 0.35 else ()
    return shut, skips, faults


def _changes(choose, model):
    """Return changes of law, parameters and model during the run."""
    changes: dict[int, dict[str, dict[str, Any]]] = {}
    if choose.random() < 0.4:
        changes[int(choose.integers(50, 200))] = {"law": dict(LAWS[str(choose.choice(list(LAWS)))])}
    if choose.random() < 0.3:
        stiffness = {"mass": 3.0} if model == "A" else {"stiffness": 6000.0, "damping": 10.0}
        changes[int(choose.integers(200, 350))] = {"element": stiffness}
    if choose.random() < 0.2:
        other = {"A": "D", "D": "A", "B": "C", "C": "B"}[model]
        changes[int(choose.integers(350, 450))] = {"session": {"model": other}, "element": dict(ELEMENTS[other])}
    return changes
