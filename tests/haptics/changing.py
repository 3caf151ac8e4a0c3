"""Recordings of runs with a change of the law, and hands that move over scenes."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from haptics import Causality, Clock, Recording, Servo
from haptics.elements.tables import element_class, make_element
from haptics.recording.recorder import Recorder
from haptics.records import NEUTRAL
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import Motion, save_motion
from haptics.rendering.rendering import Rendering
from haptics.trace import Reader
from tests.haptics.doubles import BenchDevice, make_spec

ELEMENTS: dict[str, dict[str, float]] = {
    "A": {"mass": 2.0},
    "B": {"mass": 0.1, "stiffness": 6000.0, "damping": 10.0},
    "C": {"stiffness": 6000.0, "damping": 10.0},
    "D": {"mass": 2.0, "stiffness": 2e4, "damping": 400.0},
}
"""Model to the settings of its element."""


def element_program(model, law, number=0):
    """Return the element of a law from its table as a program, with its entry in the journal of settings."""
    entry = {"program": number, "model": model, "law": law, "element": ELEMENTS[model]}
    return make_element(model, law, ELEMENTS[model], 1e-3), entry


def record_programs(folder, trace, programs, shake, *, every, duration, limits=None, **bench):
    """Record a run of `duration` [s] that changes to the next program after `every` ticks.

    `programs` are pairs of a program and its entry in the journal of settings; of a motion, only the number counts.
    `shake` disturbs the samples.
    """
    clock, first = Clock(1e-3), programs[0][0]
    device = BenchDevice(clock, first.causality, shake, **bench)

    def change(rendering):
        version, rest = divmod(clock.tick, every)
        if rest == 0 and 0 < version < len(programs):
            program, entry = programs[version]
            rendering.switch_program(program, entry["program"], version)

    bounds = Limits.for_device(device.spec, limits)
    recorder = Recorder(folder, {"device": asdict(device.spec), "limits": asdict(bounds), "rate_hz": 1000.0})
    for version, (program, entry) in enumerate(programs):
        motion = isinstance(program, Motion)
        recorder.journal_settings(version, save_motion(folder, program, entry["program"]) if motion else entry)
    recorder.attach(Reader(trace))
    Servo(device, first, trace, clock=clock, limits=bounds, before_tick=change).run(duration)
    recorder.drain()
    recorder.close({}, complete=True)
    return Recording(folder)


def record_change(folder, trace, model, laws, shake, *, at, duration, **options):
    """Record a run of `duration` [s] in which the second law takes over in tick `at`; `shake` disturbs the samples."""
    programs = [element_program(model, law) for law in laws]
    return record_programs(folder, trace, programs, shake, every=at, duration=duration, **options)


PERIOD = 1e-3
Floats = NDArray[np.float64]


def element_of(model, law, **changes):
    return element_class(model)(law=law, period=PERIOD, **{**ELEMENTS[model], **changes})


def rendering_of(program):
    wide = {"workspace_min": (-9.0, -9.0), "workspace_max": (9.0, 9.0), "max_force": 1e3, "max_force_rate": 1e7}
    most = {"max_acceleration": 1e6, "max_speed": 10.0, "max_energy": 1e6, "plausible_speed": 100.0}
    return Rendering(program, make_spec(program.causality, **wide, **most))


def moved(program, path):
    """Return the rows of an impedance device moved along a path, (n, 2) [m], one point per tick."""
    rows = np.repeat(NEUTRAL, len(path))
    rows["tick"] = np.arange(len(path))
    rows["position"] = path
    rows["velocity"][1:] = np.diff(path, axis=0) / PERIOD
    return rendering_of(program).recompute(rows)


def pulled(program, start, target, gain=400.0):
    """Return the rows of an admittance device pushed by a velocity-controlled hand with `target`, (n, 2) [m/s]."""
    rendering, rows = rendering_of(program), np.repeat(NEUTRAL, len(target))
    rows["tick"], rows["position"] = np.arange(len(target)), start
    for k in range(len(target)):
        one = rows[k : k + 1]
        if k:
            before = rows[k - 1]
            one["position"] = before["proxy"]
            speed = (before["proxy"] - (rows["proxy"][k - 2] if k > 1 else start)) / PERIOD
            one["force"] = before["friction_force"] + gain * (target[k] - speed)
        rows[k : k + 1] = rendering.recompute(one)
    return rows


def dissipated(element, rows):
    """Return the energy dissipated by the element in every tick but the first, (n - 1,) [J]."""
    if element.causality is Causality.IMPEDANCE:
        power = (-rows["command_unlimited"] * rows["velocity"]).sum(axis=1)[1:]
        moving = rows["sliding_velocity"]
    else:
        speed = np.diff(rows["proxy"], axis=0, prepend=rows["proxy"][:1]) / PERIOD
        power = (rows["force"] * speed).sum(axis=1)[1:]
        moving = speed
    stiffness, mass = getattr(element, "stiffness", 0.0), getattr(element, "mass", 0.0)
    stored = 0.5 * stiffness * (rows["displacement"] ** 2).sum(axis=1) + 0.5 * mass * (moving**2).sum(axis=1)
    return PERIOD * power - np.diff(stored)


def cross(program, speed, reach):
    """Return the rows of a crossing of the line x = 0 from -reach on; the sign of the speed [m/s] is the direction."""
    way = np.sign(speed)
    count = int(2.0 * reach / abs(speed) / PERIOD)
    if program.causality is Causality.IMPEDANCE:
        x = -way * reach + speed * PERIOD * np.arange(count)
        return moved(program, np.stack((x, np.zeros(count)), axis=1))
    return pulled(program, (-way * reach, 0.0), np.tile((speed, 0.0), (count, 1)))


def steps_at_the_border(program, rows, speed):
    """Return the largest changes of friction force and output per tick, as shares of dF v T / border.

    For an impedance v is the speed of the hand, for an admittance the speed of the proxy. Only ticks are used in which
    the proxy slides near the border, whose full width is 1.5 borders.
    """
    proxy = rows["proxy"][:, 0] * np.sign(speed)
    width = 1.5 * program.surface.border
    goes_on = rows["sliding_velocity"][:, 0] * np.sign(speed) > 0.0
    near = (proxy[:-2] > -width) & (proxy[:-2] < 2.0 * width) & goes_on[1:-1] & goes_on[2:]
    steps = np.abs(np.diff(rows["friction_force"][:, 0]))[1:][near]
    outputs = np.abs(np.diff(rows["command_unlimited"][:, 0]))[1:][near]
    difference = 5.0
    if program.causality is Causality.IMPEDANCE:
        bound = difference * abs(speed) * PERIOD / program.scene.border
        return float(steps.max() / bound), float(outputs.max() / bound)
    ways = np.abs(np.diff(rows["proxy"][:, 0]))
    bounds = difference * ways[:-1][near] / program.scene.border
    return float((steps / np.maximum(bounds, 1e-12)).max()), float(
        steps.max() / (difference * abs(speed) * PERIOD / program.scene.border)
    )
