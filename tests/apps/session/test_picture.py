"""Every run gets a picture, whatever happened in it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.session.picture import draw
from apps.session.report import describe
from haptics.device import Causality
from haptics.recording import Recorder, Recording
from haptics.trace import ROW, Reader, Trace
from tests.haptics.doubles import make_spec


def record(folder: Path, rows: np.ndarray, causality: Causality) -> Recording:
    metadata: dict[str, Any] = {
        "device": asdict(make_spec(causality)),
        "model": "C",
        "rate_hz": 1000.0,
        "configuration": {"law": {"name": "coulomb", "force": 4.0}, "element": {"stiffness": 6000.0}},
    }
    trace = Trace.create(folder / "trace")
    recorder = Recorder(folder / "run", metadata)
    recorder.follow(Reader(trace))
    for row in rows:
        trace.append(row)
    recorder.drain()
    recorder.close({}, complete=True)
    return Recording(recorder.folder)


def circle(count: int) -> np.ndarray:
    rows = np.zeros(count, ROW)
    t = np.arange(count) * 1e-3
    rows["tick"], rows["time"] = np.arange(count), t
    rows["position"] = 0.05 * np.stack((np.cos(2 * t), np.sin(2 * t)), axis=1)
    rows["command"] = rows["force"] = 4.0 * np.stack((np.sin(2 * t), -np.cos(2 * t)), axis=1)
    rows["friction_force"] = -rows["command"]
    rows["sticking"] = np.sin(5 * t) > 0.5
    rows["period_error"] = 1e-5
    return rows


@pytest.mark.parametrize("causality", list(Causality))
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_a_picture_is_drawn(tmp_path: Path, causality: Causality, count: int) -> None:
    path = draw(record(tmp_path, circle(count), causality))
    assert path is not None
    assert Path(path).read_bytes().startswith(b"\x89PNG")


def test_samples_that_were_no_numbers_do_not_stop_it(tmp_path: Path) -> None:
    rows = circle(2000)
    rows["position"][500:600] = np.nan
    rows["force"][500:600] = np.inf
    assert draw(record(tmp_path, rows, Causality.ADMITTANCE)) is not None


def test_a_run_that_never_moved_has_a_picture(tmp_path: Path) -> None:
    rows = circle(2000)
    rows["position"] = rows["command"] = rows["friction_force"] = 0.0
    rows["sticking"] = 1
    assert draw(record(tmp_path, rows, Causality.IMPEDANCE)) is not None


def test_a_run_without_ticks_has_no_picture_and_a_report(tmp_path: Path) -> None:
    assert draw(record(tmp_path, circle(0), Causality.IMPEDANCE)) is None
    summary = {
        "device": "bench",
        "model": "C",
        "rate_hz": 1000.0,
        "reason": "stopped",
        "recording": "r",
        "picture": None,
        "ticks": 0,
        "skipped": 0,
        "lost_ticks": 0,
        "overruns": 0,
        "period_error_us": {},
        "tick_us": {},
        "realtime": "other",
        "force_n": {},
        "stick_fraction": None,
    }
    assert "0 executed" in describe(summary)
