"""Sessions without a clock: the same rows as on the wall's clock, as fast as the machine can."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from haptics.recording.recording import Recording
from haptics.records import Rows, Status
from tests.processes import NO_PICTURE

TIMING = ("sample_age", "period_error", "tick_time", "write_time")
LATE = int(Status.STARTED_LATE | Status.ENDED_LATE)


def run(folder: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    out = io.StringIO()
    command = ["run", "--headless", "--json", *NO_PICTURE, "--record", str(folder), *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main(command) == status
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def rows_of(answer: dict[str, Any]) -> Rows:
    return Recording(Path(answer["recording"])).rows


@pytest.mark.parametrize(
    ("device", "model"),
    [
        ("virtual-joystick", "C"),
        ("virtual-arm", "D"),
        ("virtual-joystick", "B"),
        ("virtual-arm", "A"),
    ],
)
def test_the_rows_are_those_of_a_live_run_as_long_as_that_skips_nothing(
    device: str, model: str, tmp_path: Path
) -> None:
    arguments = "--device", device, "--model", model, "--duration", "0.5", "--seed", "4"
    live, off = run(tmp_path, *arguments), run(tmp_path, *arguments, "--clock", "off")
    assert "real_time_factor" not in live
    assert off["real_time_factor"] > 0.0
    rows, others = rows_of(live), rows_of(off)
    assert len(others) == 500
    common = int(np.argmin(np.append(rows["tick"] == np.arange(len(rows)), False)))
    assert common > 0
    np.testing.assert_array_equal(rows["status"][:common] | LATE, others["status"][:common] | LATE)
    for name in set(rows.dtype.names or ()) - {*TIMING, "status"}:
        np.testing.assert_array_equal(rows[name][:common], others[name][:common], err_msg=name)


def test_faults_come_at_their_time_and_nothing_is_lost_of_a_long_run(tmp_path: Path) -> None:
    answer = run(
        tmp_path, "--device", "virtual-joystick", "--duration", "40", "--clock", "off", "--fault", "nan@1+0.01"
    )
    rows = rows_of(answer)
    assert answer["lost_ticks"] == 0
    assert answer["ticks"] == len(rows) == 40_000  # more than the trace holds: the run waits for its recorder
    bad = np.flatnonzero(rows["status"] & int(Status.NOT_FINITE))
    assert bad.tolist() == list(range(1000, 1010))


def test_a_device_that_fails_ends_it_with_the_words_of_a_live_run(tmp_path: Path) -> None:
    answer = run(
        tmp_path, "--device", "virtual-joystick", "--duration", "9", "--clock", "off", "--fault", "unplug@2", status=4
    )
    assert answer["ticks"] == 2000
    assert "tick 2000" in answer["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "pid-joystick", "--duration", "1"), "use a virtual device"),
        (("--device", "virtual-joystick"), "--duration"),
    ],
)
def test_what_keeps_to_the_time_of_the_world_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--headless", "--record", str(tmp_path), "--clock", "off", *arguments]) == 2
    assert words in capsys.readouterr().err
