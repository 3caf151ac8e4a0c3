"""Benchmark ``stage``: frame time of the stage, compared with a cleared window of the same size.

Both are drawn alternately in slices of 30 frames in the same window. The result is the median over rounds of the ratio
of neighbouring slices. The time of a frame ends when the graphics pipeline has finished. The stage shows a scene with
three materials, and 17 new rows per frame.
"""

from __future__ import annotations

from typing import Any

from apps.bench.live.frames import SIZE, SLICE
from apps.bench.outcome import CannotMeasure, Outcome, Progress, table
from apps.doctor.child import NoAnswer, call_in_child

TITLE = "time of a frame of the stage, as a ratio to a window that is only cleared"

ROUNDS = 20
BUDGET = 1e3 / 60.0
"""Frame time at 60 frames per second [ms]."""


def run(progress: Progress) -> Outcome:
    """Run the benchmark."""
    progress(0.0, f"{ROUNDS} times {SLICE} frames")
    try:
        found: dict[str, Any] = call_in_child("apps.bench.live.frames:measure", ROUNDS, timeout=300.0)
    except NoAnswer as error:
        raise CannotMeasure(f"bench stage: the stage cannot be drawn here ({error}).") from error
    if "obstacle" in found:
        raise CannotMeasure(f"bench stage: {found['obstacle']}")
    found |= {"size": list(SIZE), "budget_ms": round(BUDGET, 3), "within_budget": found["frame_ms"]["p95"] < BUDGET}
    return Outcome(found, _text(found))


def _text(found: dict[str, Any]) -> str:
    names = ("p50", "p95")
    rows = [
        ("", "median ms", "95 % ms"),
        ("stage", *(found["frame_ms"][name] for name in names)),
        ("cleared", *(found["reference_ms"][name] for name in names)),
        ("ratio", *(found[f"ratio_{name}"] for name in names)),
        ("processor", *(found["cpu_ms"][name] for name in names)),
    ]
    verdict = "within" if found["within_budget"] else "beyond"
    return (
        f"{SIZE[0]} x {SIZE[1]} pixels, {found['renderer']}; {found['shapes']} shapes that move or change, "
        f"{found['standing_shapes']} that stand still\n\n{table(rows)}\n\n"
        f"the 95 % of its frames are {verdict} the {BUDGET:.1f} ms of 60 frames a second"
    )
