"""Recordings of runs in which one law takes over from another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from haptics.clock import Clock
from haptics.device import State
from haptics.elements.tables import make_element
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from haptics.servo.servo import Servo
from haptics.trace import Reader, Trace

from .doubles import BenchDevice

ELEMENTS: dict[str, dict[str, float]] = {
    "A": {"mass": 2.0},
    "B": {"mass": 0.1, "stiffness": 6000.0, "damping": 10.0},
    "C": {"stiffness": 6000.0, "damping": 10.0},
    "D": {"mass": 2.0, "stiffness": 2e4, "damping": 400.0},
}
"""Model to the settings of its element."""


def record_change(
    folder: Path,
    trace: Trace,
    model: str,
    laws: Sequence[Mapping[str, Any]],
    shake: Callable[[State, int], None],
    *,
    at: int,
    duration: float,
    limits: dict[str, Any] | None = None,
    **bench: Any,
) -> Recording:
    """Record a run of `duration` [s] in which the second law takes over in tick `at`; `shake` disturbs the samples."""
    clock = Clock(1e-3)
    elements = [make_element(model, law, ELEMENTS[model], 1e-3) for law in laws]
    device = BenchDevice(clock, elements[0].causality, shake, **bench)

    def change(rendering: Rendering) -> None:
        if clock.tick == at:
            rendering.configure(parameters_of(elements[1]), 1)

    bounds = Limits.of(device.spec, limits)
    metadata = {"device": asdict(device.spec), "limits": asdict(bounds), "rate_hz": 1000.0, "model": model}
    recorder = Recorder(folder, metadata)
    for version, law in enumerate(laws):
        recorder.journal_settings(version, {"model": model, "law": law, "element": ELEMENTS[model]})
    recorder.follow(Reader(trace))
    Servo(device, elements[0], trace, clock=clock, limits=bounds, before_tick=change).run(duration)
    recorder.drain()
    recorder.close({}, complete=True)
    return Recording(folder)
