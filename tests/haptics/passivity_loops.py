"""What the tests of the passivity observer and of its controller share: handles, hands, runs and what is read off."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from devices.virtual.joystick import VirtualJoystick
from haptics import Clock, Coulomb, MasslessImpedance, Servo, Trace
from haptics.device import DeviceSpec, State
from haptics.elements.models import Element
from haptics.records import ROW, Rows, Status
from haptics.rendering.envelope import Limits
from haptics.rendering.rendering import Rendering

T = 1e-3
COUNT = 10e-6
PUSH = ((0.2, 0.0, 0.0), (0.21, 6.0, 2.0), (0.23, 6.0, 2.0), (0.24, 0.0, 0.0))
"""A hand that pushes the handle into a slide once the force has faded in, and lets go of it."""

BARE: dict[str, Any] = {
    "mass": 0.2,
    "damping": 0.0,
    "delay": 2e-3,
    "resolution": COUNT,
    "hand": {"name": "scripted-force", "script": PUSH},
}
GRIPPED: dict[str, Any] = {**BARE, "hand": {"name": "minimum-jerk"}}


def model_c(stiffness: float = 6000.0, damping: float = 10.0, period: float = T) -> MasslessImpedance:
    return MasslessImpedance(Coulomb(4.0), stiffness, damping, period)


def session(
    element: Element,
    settings: dict[str, Any],
    *,
    control: bool,
    seconds: float = 2.0,
    device: Any = VirtualJoystick,
) -> Rows:
    """Run an element on a device without waiting; return the trace."""
    clock = Clock(element.period)
    plant = device(settings, clock=clock)
    limits = Limits.of(plant.spec, {"passivity_control": control} if control else {})
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.create(Path(folder) / "trace")
        Servo(plant, element, trace, clock=clock, limits=limits).run(seconds)
        return trace.since(0)


def data_sheet(**changes: Any) -> DeviceSpec:
    fields: dict[str, Any] = {"delay": 0.0, "mass": 0.2, "fade_in": 0.0, **changes}
    return replace(VirtualJoystick().spec, **{"position_resolution": None, "velocity_lag": 0.0, **fields})


def ring_after_a_slide(ticks: int, rendering: Rendering | None = None) -> Rows:
    """Drag a handle for so many `ticks`, then let it swing to and fro under a late spring; return the trace."""
    slide = 0.1 * T * np.arange(ticks)
    ring = slide[-1] - 2e-4 * (1.0 - np.cos(170.0 * T * np.arange(400)))
    rendering = rendering or Rendering(model_c(), data_sheet(delay=2e-3))
    path = np.concatenate((slide, ring))
    rows = np.zeros(len(path), ROW)
    for tick, (x, step) in enumerate(zip(path, np.diff(path, prepend=0.0), strict=True)):
        state = State(position=np.array([x, 0.0]), velocity=np.array([step / T, 0.0]))
        rendering.tick(state, 0.0, rows, tick, (tick, tick * T, 0.0, 0))
    return rows


def swing(rows: Rows, start: float) -> float:
    """Return by how much the handle swings from `start` [s] on [m], each direction for itself."""
    late = rows["position"][rows["time"] >= start]
    return float(np.ptp(late, axis=0).max())


def helped(rows: Rows) -> Any:
    """Return for each tick whether damping was added."""
    return rows["status"] & Status.PASSIVITY != 0
