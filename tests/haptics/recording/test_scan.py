"""The pass over the rows of a recording that checks each of them."""

from collections.abc import Callable

import numpy as np
import pytest

from haptics.recording.checks import Finding, Scan
from haptics.records import ROW, Permission, Rows, Status

COUNT = 100


def sound() -> Rows:
    rows = np.zeros(COUNT, ROW)
    rows["tick"], rows["gate"] = np.arange(COUNT), 1.0
    rows["time"] = rows["tick"] * 1e-3
    return rows


def scanned(rows: Rows, size: int = COUNT, dead_man: str = "none") -> tuple[Scan, list[Finding]]:
    scan = Scan(1e-3, dead_man)
    for start in range(0, len(rows), size):
        scan.take(rows[start : start + size])
    return scan, list(scan.findings())


def skip(rows: Rows) -> None:
    rows["tick"][41:] += 7
    rows["time"] = rows["tick"] * 1e-3


def go_back(rows: Rows) -> None:
    rows["tick"][60] = 58


def start_late(rows: Rows) -> None:
    rows["tick"] += 3
    rows["time"] = rows["tick"] * 1e-3


def older_settings(rows: Rows) -> None:
    rows["settings_version"][20:] = 2
    rows["settings_version"][70:] = 1


def spoil_times(rows: Rows) -> None:
    rows["time"][[5, 50, 90]] += 1e-6
    rows["period_error"][[7, 8]] = np.nan
    rows["status"][[30, 31]] = int(Status.ENDED_LATE)
    rows["gate"][99] = 1.5


def go_on_after_the_end(rows: Rows) -> None:
    rows["permission"][40:50] = int(Permission.ENDING)
    rows["permission"][60:] = int(Permission.RELEASED)


def explained(rows: Rows) -> None:
    skip(rows)
    rows["status"][41] = int(Status.AFTER_SKIP)


CASES = [sound, skip, go_back, start_late, older_settings, spoil_times, go_on_after_the_end, explained]


@pytest.mark.parametrize("size", [1, 3, 41, 60, COUNT])
@pytest.mark.parametrize("change", CASES)
def test_result_does_not_depend_on_the_size_of_the_pieces(change: Callable[[Rows], None], size: int) -> None:
    rows = sound()
    if change is not sound:
        change(rows)
    one, findings = scanned(rows)
    other, same = scanned(rows, size)
    assert findings == same
    for name in ("gap", "gap_tick", "back", "older_settings"):
        assert getattr(one, name) == getattr(other, name)


SPOILT = {"time": (5, 3), "period_error": (7, 2), "ended_late": (30, 2), "gate": (99, 1)}


@pytest.mark.parametrize(
    ("change", "gap", "back", "older", "broken"),
    [
        (None, COUNT, None, None, {}),
        (skip, 41, None, None, {}),
        (explained, COUNT, None, None, {}),
        (go_back, 60, (59, 58), None, {"time": (58, 1)}),
        (start_late, 0, None, None, {}),
        (older_settings, COUNT, None, 70, {}),
        (
            spoil_times,
            COUNT,
            None,
            None,
            {"time": (5, 3), "period_error": (7, 2), "ended_late": (30, 2), "gate": (99, 1)},
        ),
    ],
)
def test_what_is_wrong_is_found(change, gap, back, older, broken) -> None:  # type: ignore[no-untyped-def]
    rows = sound()
    if change is not None:
        change(rows)
    scan, findings = scanned(rows, 17)
    assert (scan.gap, scan.back, scan.older_settings) == (gap, back, older)
    told = {one.rule: (one.tick, int(one.words.rpartition("(")[2].split()[0])) for one in findings}
    assert told == broken


def test_permissions_are_judged_by_the_dead_mans_switch() -> None:
    rows = sound()
    go_on_after_the_end(rows)
    _, findings = scanned(rows, 7)
    assert [(one.words.split(",")[0], one.tick) for one in findings] == [
        ("a run that was ending went on", 50),
        ("a dead-man's switch was released", 60),
    ]
    _, findings = scanned(rows, 7, dead_man="button")
    assert [one.rule for one in findings] == ["permission", "buttons"]
