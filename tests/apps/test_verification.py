"""Verification of recordings: unchanged ones pass, and manipulated ones are detected."""

import functools
import json
import operator
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import append_fields, repack_fields

from apps import cli
from apps.verification import examine
from haptics.errors import HapticError, RecordingError
from haptics.recording.recording import FORMAT, METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.tick_file import TickTable
from haptics.records import FORMATS
from tests.apps.verify import runs

TICKS_RUN = 600


def make(folder, device="virtual-joystick", hand=None):
    """Record a run that misses two deadlines; return the folder of the recording."""
    envelope = {"max_force": 3.5} if device == "virtual-joystick" else {}
    tables = {"session": {}, "device": {"name": device}, "hand": hand or {}, "envelope": envelope}
    return runs.make(folder, runs.Plan(tables, TICKS_RUN, skips=(300,)))


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return make(tmp_path_factory.mktemp("honest") / "run")


@pytest.fixture
def forged(honest, tmp_path):
    """Return a copy of the recording that a test may change."""
    return Path(shutil.copytree(honest, tmp_path / "forged"))


def describe(folder, change):
    path = folder / METADATA
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def rewrite(folder, change, *, hashed):
    """Change the rows, and with `hashed` also their hash."""
    rows = np.load(folder / TICKS)
    changed = change(rows)
    np.save(folder / TICKS, rows if changed is None else changed)
    if hashed:
        digest = TickTable(folder / TICKS).sha256()
        describe(folder, lambda metadata: metadata.update(rows_sha256=digest))


def rules(folder):
    found = examine(Recording(folder))
    return found.verdict, {finding.rule for finding in found.findings}


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_unchanged_recording_passes(tmp_path, device):
    found = examine(Recording(make(tmp_path / "run", device)))
    assert (found.findings, found.verdict, found.mismatches) == ((), "ok", 0)
    assert found.ticks == TICKS_RUN - 2
    path = tmp_path / "hand.csv"
    path.write_text("time,x,y\n0,0,0\n1,0.02,0\n2,0,0\n")
    folder = make(tmp_path / "recorded", device, {"name": "recorded", "file": str(path)})
    path.unlink()
    assert rules(folder) == ("ok", set())


def setting(column, value):
    return lambda rows: rows[column].__setitem__(slice(100, 110), value)


Change = Callable[[Any], None]
CHANGED_ROWS: dict[str, tuple[Change, set[str]]] = {
    "time": (setting("time", 3.0), {"time"}),
    "lateness": (setting("period_error", 4e-4), {"certificate"}),
    "a lateness of a period": (setting("period_error", 1.2e-3), {"period_error"}),
    "no lateness": (setting("period_error", np.nan), {"period_error"}),
    "duration of ticks": (setting("tick_time", 5e-3), {"ended_late"}),
    "endless ticks": (setting("tick_time", np.nan), {"write_time"}),
    "time of writing": (setting("write_time", 0.5), {"write_time"}),
    "age of samples": (setting("sample_age", 1e-3), {"certificate"}),
    "release": (setting("permission", 1), {"permission", "replay"}),
    "a bit of permission": (setting("permission", 8), {"permission"}),
    "a flag that does not exist": (setting("status", 1 << 20), {"status"}),
    "a flag of lateness": (setting("status", 1 << 8), {"started_late"}),
    "a gate beyond all": (setting("gate", 1.01), {"gate"}),
    "a gate of nothing known": (setting("gate", np.nan), {"gate"}),
    "a flag of a skip": (setting("status", 1 << 10), {"after_skip"}),
    "shifted ticks": (lambda rows: rows["tick"].__iadd__(1), {"tick"}),
    "ticks shifted from one on": (lambda rows: rows["tick"][100:].__iadd__(1), {"tick", "time"}),
    "ticks that go back": (setting("tick", 3), {"tick"}),
    "friction": (setting("friction_force", 9.0), {"replay"}),
    "a region without a scene": (setting("region", 0), {"replay"}),
}


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize(("change", "expected"), CHANGED_ROWS.values(), ids=CHANGED_ROWS.keys())
def test_changed_rows_are_found(forged, change, expected, hashed):
    rewrite(forged, lambda rows: (change(rows), None)[1], hashed=hashed)
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert expected <= found


@pytest.mark.parametrize(("column", "value"), [("force", 2.0), ("buttons", 6), ("marker", 2), ("hand_force", 1.0)])
def test_unused_columns_are_protected_by_the_hash(forged, column, value):
    """The element uses neither the measured force of an impedance device nor buttons or markers."""
    rewrite(forged, setting(column, value), hashed=False)
    assert rules(forged) == ("violated", {"hash"})


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("left", [slice(0, 300), slice(0, 0), slice(200, None), slice(0, 1)])
def test_missing_rows_make_the_recording_incomplete(forged, left, hashed):
    rewrite(forged, lambda rows: rows[left], hashed=hashed)
    verdict, found = rules(forged)
    assert verdict == "incomplete"
    assert {"rows", "certificate"} <= found


def test_missing_rows_with_an_adapted_tick_count_are_detected(forged):
    rewrite(forged, lambda rows: rows[:200], hashed=True)
    describe(forged, lambda metadata: metadata["certificate"].update(ticks=200))
    assert rules(forged)[0] == "violated"


def put(path, value):
    *parents, last = path.split(".")
    return lambda metadata: functools.reduce(operator.getitem, parents, metadata).update({last: value})


FORGED: list[tuple[str, Any, str]] = [
    ("certificate.overruns", 7, "certificate"), ("certificate.period_error_us", {"p50": 1.0}, "certificate"),
    ("certificate.longest_gap_us", 5.0, "certificate"), ("certificate.fit", True, "certificate"),
    ("certificate.scheduling", "fifo", "certificate"), ("certificate.histograms.tick_us", [0] * 60, "certificate"),
    ("flags", {}, "certificate"), ("force_n.max", 1.0, "certificate"), ("stick_fraction", 2, "certificate"),
    ("certificate.ticks", 500, "rows"), ("configuration.law.force", 3.0, "configuration"),
    ("configuration.session.rate", 500.0, "configuration"), ("configuration.session.model", "B", "configuration"),
    ("model", "B", "configuration"), ("configuration.envelope", {}, "limits"), ("limits.max_energy", 0.05, "limits"),
    ("device.mass", 0.3, "device"), ("device.name", "virtual-arm", "configuration"),
    ("columns.time", "ms", "columns"), ("columns", {}, "columns"), ("columns.pressure", "Pa", "columns"),
    ("origin_monotonic_ns", 0, "origin"), ("origin_monotonic_ns", 1.5e12, "origin"),
    ("origin_monotonic_ns", True, "origin"), ("origin_utc", "yesterday", "origin"),
    ("origin_utc", "2026-01-01T00:00:00.000000", "origin"), ("origin_utc", 5, "origin"), ("rate_hz", 500.0, "time"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "rule"), FORGED, ids=[path for path, _, _ in FORGED])
def test_changed_metadata_is_detected(forged, path, value, rule):
    describe(forged, put(path, value))
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert rule in found


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (put("state", "running"), "state"),
        (put("state", "interrupted"), "state"),
        (lambda metadata: metadata.pop("certificate"), "certificate"),
        (lambda metadata: metadata["certificate"].pop("tick_us"), "certificate"),
        (lambda metadata: metadata.pop("origin_utc"), "origin"),
        (lambda metadata: metadata.pop("origin_monotonic_ns"), "origin"),
        (lambda metadata: metadata.pop("configuration"), "configuration"),
        (put("certificate.lost_ticks", 3), "rows"),
        (put("configuration.device.parameters", "/nowhere.toml"), "device"),
    ],
)
def test_missing_evidence_makes_the_recording_incomplete(forged, change, rule):
    describe(forged, change)
    verdict, found = rules(forged)
    assert verdict == "incomplete"
    assert rule in found


def test_recording_without_a_hash_is_checked_by_the_other_rules(forged):
    describe(forged, lambda metadata: [metadata.pop("rows_sha256"), metadata["certificate"].pop("longest_gap_us")])
    assert rules(forged) == ("ok", {"hash"})
    rewrite(forged, setting("time", 3.0), hashed=False)
    assert rules(forged)[0] == "violated"


@pytest.mark.parametrize("program", ["0" * 64, None])
def test_data_sheet_of_another_version_is_reported_without_a_violation(forged, program):
    describe(forged, put("device.mass", 0.3))
    assert rules(forged) == ("violated", {"device"})
    describe(forged, put("program_sha256", program))
    assert rules(forged) == ("ok", {"device"})


def test_columns_unknown_to_an_older_format_are_not_required(forged):
    later = [name for name, since in FORMATS.items() if since == 3]
    rewrite(forged, lambda rows: repack_fields(rows[[n for n in rows.dtype.names if n not in later]]), hashed=True)
    assert rules(forged) == ("violated", {"columns"})  # described but absent
    describe(forged, lambda metadata: [metadata["columns"].pop(name) for name in later])
    assert rules(forged) == ("incomplete", {"columns"})
    describe(forged, lambda metadata: [metadata.pop("origin_utc"), metadata.update(format=2)])
    assert rules(forged) == ("ok", set())


def test_additional_columns_must_be_described(forged):
    pressure = np.arange(TICKS_RUN - 2) * 0.5
    rewrite(forged, lambda rows: append_fields(rows, "pressure", pressure, usemask=False), hashed=True)
    assert rules(forged) == ("violated", {"columns"})
    describe(forged, lambda metadata: metadata["columns"].update(pressure="Pa"))
    assert rules(forged) == ("ok", set())
    assert Recording(forged).rows["pressure"][3] == 1.5


@pytest.fixture(scope="module")
def honest_arm(tmp_path_factory):
    return make(tmp_path_factory.mktemp("arm") / "run", "virtual-arm")


@pytest.mark.parametrize(
    ("channels", "rule"),
    [
        ([["joint_angles", "rad", 2], ["motor_torques", "N m", 2]], "device"),  # the third is one of others then
        ([["joint_angles", "deg", 2], ["motor_torques", "N m", 2], ["raw_wrench", "N, N m", 6]], "columns"),
        ([["joint_angles", "rad", 1], ["motor_torques", "N m", 2], ["raw_wrench", "N, N m", 6]], "columns"),
        ([["joint_angles", "rad", 2], ["more", "V", 1]], "columns"),
    ],
)
def test_changed_channels_are_detected(honest_arm, tmp_path, channels, rule):
    rows = Recording(honest_arm).rows
    assert np.isfinite(rows["channel_raw_wrench"]).all()
    assert rows["channel_joint_angles"].shape == (TICKS_RUN - 2, 2)
    assert np.ptp(rows["channel_motor_torques"], axis=0).min() > 0.0
    forged = Path(shutil.copytree(honest_arm, tmp_path / "forged"))
    describe(forged, put("device.channels", channels))
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert rule in found


@pytest.mark.parametrize("channels", [5, [5], [["joint_angles", "rad"]], [["Tick", "1", 1]], [["a", "V", 10**9]]])
def test_invalid_channels_are_refused(forged, channels):
    describe(forged, put("device.channels", channels))
    with pytest.raises(HapticError, match="channel"):
        examine(Recording(forged))
    rewrite(forged, lambda rows: rows[:0], hashed=True)  # nothing to compute again
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert "columns" in found


def test_unordered_settings_journal_is_detected(forged):
    path = forged / SETTINGS
    path.write_text(path.read_text() * 2)
    assert rules(forged) == ("violated", {"settings"})


@pytest.mark.parametrize("value", [FORMAT + 1, 10**9, str(FORMAT), float(FORMAT), True, None, 0])
def test_unknown_format_is_refused(forged, value):
    describe(forged, put("format", value))
    with pytest.raises(RecordingError, match=f"this version reads up to {FORMAT}"):
        Recording(forged)


def test_command_reports_verdict_and_findings(forged, capsys):
    assert cli.main(["replay", str(forged), "--verify"]) == 0
    assert capsys.readouterr().out == f"{TICKS_RUN - 2} ticks computed again, 0 differ\nverdict: ok\n"
    rewrite(forged, lambda rows: rows[:100], hashed=False)
    assert cli.main(["replay", str(forged), "--verify", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ticks"], answer["mismatches"], answer["verdict"]) == (100, 0, "incomplete")
    assert answer["findings"][0] == {
        "rule": "rows",
        "verdict": "incomplete",
        "words": f"the recording holds 100 of the {TICKS_RUN - 2} ticks of its run.",
        "tick": None,
    }
    rows = np.load(forged / TICKS)
    rows["command"][5] += 1.0
    np.save(forged / TICKS, rows)
    (forged / TICKS).rename(forged / PART)
    assert cli.main(["replay", str(forged), "--verify"]) == 1
    said = capsys.readouterr().out
    assert "1 differ, the first is tick 5" in said
    assert said.endswith("verdict: violated\n")
