"""Benchmark ``servo``: wake-up latency of the servo, compared with cyclictest on the same machine.

Slices of several seconds alternate between a session (virtual joystick, model C) and cyclictest, at the same priority
and period. Because the load of a machine changes from minute to minute, neighbouring slices are compared, and the
result is the median of these ratios. If Qt can be loaded, everything is measured twice: with the live view running in a
separate process, and without it.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from apps.bench.live import cyclictest
from apps.bench.live.parallel_view import Together, View, Windows, show_stage, show_view, view_obstacle
from apps.bench.live.servo_report import report
from apps.bench.live.servo_slices import Candidates, Condition
from apps.bench.live.turns import Turns
from apps.bench.outcome import CannotMeasure, Outcome, Progress
from apps.bench.stop import Stop
from apps.stage.launch import stage_obstacle
from haptics.settings import build, choice, documented

TITLE = "punctuality of the servo, as ratios to cyclictest in alternating slices, with and without a live view"

_WHERE = "bench servo"
_TRIAL = 2.0

WITH_VIEW, WITH_STAGE, WITHOUT_VIEW = "with_view", "with_view_and_stage", "without_view"

_CONDITIONS = {
    "on": (WITH_VIEW,),
    "off": (WITHOUT_VIEW,),
    "both": (WITH_VIEW, WITHOUT_VIEW),
    "stage": (WITH_STAGE, WITHOUT_VIEW),
}


@documented
@dataclass(frozen=True)
class Settings(Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = _WHERE

    view: str = choice(
        "both", tuple(_CONDITIONS), doc="whether a live view runs beside them, or ('stage') the stage as well"
    )

    @property
    def conditions(self) -> tuple[str, ...]:
        """Measured conditions.

        The first one is decisive.
        """
        return _CONDITIONS[self.view]

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return 2 * len(self.conditions)


def run(progress: Progress, **options: Any) -> Outcome:
    """Run the benchmark."""
    obstacle = view_obstacle()
    settings = build(Settings, {"view": "off" if obstacle else "both", **options}, _WHERE)
    cyclictest.require()
    if obstacle and settings.view != "off":
        raise CannotMeasure(f"{_WHERE}.view = {settings.view!r}: {obstacle}.")
    if settings.view == "stage" and (obstacle := stage_obstacle() or ""):
        raise CannotMeasure(f"{_WHERE}.view = 'stage': {obstacle}.")
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        progress(0.0, "a warm-up session")
        candidates = Candidates(Path(folder), settings.rate, settings.servo, stop)
        trial = candidates.trial(_TRIAL)
        view, stage = (View(trial.rows, trial.started, stop, show) for show in (show_view, show_stage))
        windows: dict[str, Windows] = {WITH_VIEW: view, WITH_STAGE: Together(view, stage)}
        conditions = _take_turns(settings, candidates, trial.priority, windows, progress)
        command = " ".join(candidates.command(settings.length, trial.priority))
    return report(conditions, trial, settings.length, command, f"no live view: {obstacle}" if obstacle else "")


def _take_turns(
    settings: Settings, candidates: Candidates, priority: int, windows: Mapping[str, Windows], progress: Progress
) -> dict[str, Condition]:
    """Measure both candidates under all conditions in every round, in alternating order."""
    conditions = {name: Condition() for name in settings.conditions}
    total, done = settings.turns * settings.rounds, 0
    for number in range(settings.rounds):
        order = (True, False) if number % 2 == 0 else (False, True)
        for name, condition in conditions.items():
            beside = windows.get(name)
            with beside or contextlib.nullcontext():
                for own in order:
                    who = "servo" if own else cyclictest.NAME
                    progress(done / total, f"{who} {name.replace('_', ' ')}, slice {done + 1} of {total}")
                    if own:
                        condition.servo.append(candidates.servo(settings.length, beside))
                    else:
                        condition.reference.append(candidates.reference(settings.length, priority, beside))
                    done += 1
    return conditions
