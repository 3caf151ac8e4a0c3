"""Benchmark ``stage``: frame time of the stage, compared with a cleared window of the same size.

Both are drawn alternately in slices of 30 frames in the same window. The result is the median over rounds of the ratio
of neighbouring slices. The time of a frame ends when the graphics pipeline has finished. The stage shows a scene with
three materials, and 17 new rows per frame.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import CannotMeasure, Progress, table
from apps.doctor.child import NoAnswer, call_in_child
from apps.front_ends.messages import Parameter, SessionStarted
from apps.shared.command import Answer
from haptics.records import NEUTRAL, Rows
from haptics.trace import Trace

Floats = NDArray[np.float64]

SIZE = (1280, 720)
SLICE = 30
"""Frames of each candidate per round."""

_WORKSPACE = ((-0.06, -0.045), (0.06, 0.045))
_SCENE = "ice-wood-rubber"
_ROWS_A_FRAME = 17
_SHARES = (("p50", 50), ("p95", 95))

ROUNDS = 20
BUDGET = 1e3 / 60.0
"""Frame time at 60 frames per second [ms]."""


def run(progress: Progress) -> Answer:
    """Run the benchmark."""
    progress(0.0, f"{ROUNDS} times {SLICE} frames")
    try:
        found: dict[str, Any] = call_in_child("apps.bench.stage:measure", ROUNDS, timeout=300.0)
    except NoAnswer as error:
        raise CannotMeasure(f"bench stage: the stage cannot be drawn here ({error}).") from error
    if "obstacle" in found:
        raise CannotMeasure(f"bench stage: {found['obstacle']}")
    found |= {"size": list(SIZE), "budget_ms": round(BUDGET, 3), "within_budget": found["frame_ms"]["p95"] < BUDGET}
    return Answer(found, _text(found))


def _text(found: dict[str, Any]) -> str:
    rows = [
        ("", "median ms", "95 % ms"),
        *((name, *found[key].values()) for name, key in (("stage", "frame_ms"), ("cleared", "reference_ms"))),
        ("ratio", *(found[f"ratio_{name}"] for name, _ in _SHARES)),
        ("processor", *found["cpu_ms"].values()),
    ]
    verdict = "within" if found["within_budget"] else "beyond"
    return (
        f"{SIZE[0]} x {SIZE[1]} pixels, {found['renderer']}; {found['shapes']} shapes that move or change, "
        f"{found['standing_shapes']} that stand still\n\n{table(rows)}\n\n"
        f"the 95 % of its frames are {verdict} the {BUDGET:.1f} ms of 60 frames a second"
    )


# --- process of the stage ------------------------------------------------------------------------------------------


def motion(count: int) -> Rows:
    """Return rows of a hand that moves along ellipses and sticks part of the time, at 1 kHz."""
    rows = np.repeat(NEUTRAL, count)
    rows["tick"] = np.arange(count)
    rows["time"] = 1e-3 * rows["tick"]
    angle = 2.0 * np.pi * 0.4 * rows["time"]
    rows["position"] = np.column_stack((0.05 * np.cos(angle), 0.035 * np.sin(angle)))
    along = np.column_stack((-np.sin(angle), np.cos(angle)))
    rows["displacement"], rows["velocity"] = 6.7e-4 * along, 0.1 * along
    rows["command"] = -4.0 * along
    rows["sticking"] = rows["tick"] // 120 % 3 == 0
    rows["region"] = 0
    return rows


def measure(rounds: int) -> dict[str, Any]:
    """Alternately draw the stage and an empty window.

    Returns
    -------
    dict
        ``frame_ms``, ``reference_ms``, ``cpu_ms`` (``p50``, ``p95``), ``ratio_p50``, ``ratio_p95``, ``shapes``,
        ``standing_shapes``, ``renderer``; or ``obstacle``, the reason why nothing can be drawn.
    """
    os.environ.setdefault("LP_NUM_THREADS", "1")  # as in the process of the stage
    from apps.opengl.window import open_window, unavailable_message

    try:
        window = open_window("haptics: bench", size=SIZE)
    except Exception as error:  # graphics libraries raise various exceptions
        return {"obstacle": unavailable_message("the stage", error)}

    def clear() -> None:
        window.switch_to()
        window.clear()
        window.flip()

    with tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        trace = Trace.create(Path(folder) / "trace")
        stage = _stage(window, trace)
        rows = motion(8000)
        stage_times, cpu_times, empty_times = (np.zeros((rounds, SLICE)) for _ in range(3))
        for number in range(-1, rounds):  # the first round is a warm-up
            for frame in range(SLICE):
                for tick in range(trace.count, trace.count + _ROWS_A_FRAME):
                    row = rows[tick % len(rows)].copy()
                    row["tick"] = tick
                    trace.append(row)
                stage_times[number, frame], cpu_times[number, frame] = _timed(lambda: stage.draw(time.monotonic()))
            for frame in range(SLICE):
                empty_times[number, frame], _ = _timed(clear)

        def ratio(share: int) -> float:
            own, other = (np.percentile(part, share, axis=1) for part in (stage_times, empty_times))
            return round(float(np.median(own / other)), 3)

        found = {
            "frame_ms": _figures(stage_times),
            "reference_ms": _figures(empty_times),
            "cpu_ms": _figures(cpu_times),
            **{f"ratio_{name}": ratio(share) for name, share in _SHARES},
            "shapes": stage.picture.shapes,
            "standing_shapes": stage.picture.backdrop.shapes,
            "renderer": window.context.get_info().get_renderer(),
        }
        window.close()
    return found


def _stage(window: Any, trace: Trace) -> Any:
    """Return a stage with a scene, in the size of the window."""
    from apps.front_ends.front_end import Link
    from apps.shared.theme import DARK
    from apps.stage.window import StageWindow
    from haptics.scenes import find_scene, read_scene

    ours, far_end = multiprocessing.Pipe()
    stage = StageWindow(Link(far_end), window, DARK)
    ours.send(
        SessionStarted(
            trace=str(trace.path),
            recording="",
            device="virtual-joystick",
            model="C",
            causality="impedance",
            rate_hz=1000.0,
            hand="minimum-jerk",
            workspace=_WORKSPACE,
            parameters=(Parameter("element.stiffness", 6000.0, 100.0, 1e4, "N/m"),),
            choices={},
            hands=(),
            mouse=False,
            force_scale=4.0,
            scene=read_scene(find_scene(_SCENE)),
        )
    )
    stage.step()
    return stage


def _timed(draw: Callable[[], None]) -> tuple[float, float]:
    """Return wall time and processor time of a frame until the graphics have finished [ms]."""
    from pyglet import gl

    start, used = time.perf_counter(), time.process_time()
    draw()
    gl.glFinish()
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - used)


def _figures(times: Floats) -> dict[str, float]:
    return {name: round(float(np.percentile(times, share)), 3) for name, share in _SHARES}
