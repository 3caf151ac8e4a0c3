"""`haptics replay --verify`: an honest recording passes, and every forgery that leaves a trace is noticed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.recfunctions
import pytest

from apps import cli
from apps.session.record import new_recorder
from apps.settings.config import complete
from apps.verification import examine
from devices import create_device
from haptics.clock import Clock
from haptics.errors import HapticError, RecordingError
from haptics.recording.columns import FORMATS
from haptics.recording.recording import METADATA, PART, SETTINGS, TICKS, Recording
from haptics.recording.tick_file import TickTable
from haptics.servo.servo import Servo
from haptics.trace import Reader, Trace
from tests.certificates import certificate, felt, flags_seen

PERIOD = 1e-3
TICKS_RUN = 600


class Lazy(Clock):
    """Is late now and then, by a known time, and misses two deadlines."""

    late = 0.0

    def wait(self, tick: int) -> float:
        super().wait(tick)
        self.late = 2.3 * PERIOD if tick == 300 else 0.01 * (tick % 7) * PERIOD
        return self.late

    def elapsed(self) -> float:
        return self.time + self.late % PERIOD + 2e-5


def make(folder: Path, device: str = "virtual-joystick", hand: dict[str, Any] | None = None) -> Path:
    """Make the recording of a run as a session does, without its processes."""
    config = complete(
        {
            "device": {"name": device},
            "hand": hand or {},
            "session": {"duration": TICKS_RUN * PERIOD, "record": str(folder)},
            "envelope": {"max_force": 3.5} if device == "virtual-joystick" else {},
        }
    )
    clock, trace = Lazy(PERIOD), Trace.create(folder.parent / f"{folder.name}.trace")
    handle = create_device(device, config.device_settings, clock=clock)
    recorder = new_recorder(config, [])
    recorder.follow(Reader(trace))
    Servo(handle, config.built_element, trace, clock=clock, limits=config.limits).run(TICKS_RUN * PERIOD)
    recorder.drain()
    rows = recorder.rows()
    recorder.note(real_time={"scheduling": "other"})
    recorder.close({"reason": "completed", "error": None}, complete=True)
    timing = certificate(rows, trace.count, TICKS_RUN, PERIOD)
    unfit = config.fitness.judge(timing)
    timing |= {"fit": not unfit, "unfit_because": unfit, "scheduling": "other"}
    recorder.note(certificate=timing, flags=flags_seen(rows), **felt(rows, handle.spec.causality))
    return recorder.folder


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("honest") / "run")


@pytest.fixture
def forged(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "forged")
    return tmp_path / "forged"


def describe(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / METADATA
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def rewrite(folder: Path, change: Callable[[Any], Any], *, hashed: bool) -> None:
    """Change the rows; where `hashed`, as somebody does who knows of the hash."""
    rows = np.load(folder / TICKS)
    changed = change(rows)
    np.save(folder / TICKS, rows if changed is None else changed)
    if hashed:
        digest = TickTable(folder / TICKS).sha256()
        describe(folder, lambda metadata: metadata.update(rows_sha256=digest))


def rules(folder: Path) -> tuple[str, set[str]]:
    found = examine(Recording(folder))
    return found.verdict, {finding.rule for finding in found.findings}


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_an_honest_recording_passes(tmp_path: Path, device: str) -> None:
    found = examine(Recording(make(tmp_path / "run", device)))
    assert (found.findings, found.verdict, found.mismatches) == ((), "ok", 0)
    assert found.ticks == TICKS_RUN - 2


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_a_recorded_hand_has_its_own_grip_in_the_data_sheet(tmp_path: Path, device: str) -> None:
    path = tmp_path / "hand.csv"
    path.write_text("time,x,y\n0,0,0\n1,0.02,0\n2,0,0\n")
    folder = make(tmp_path / "run", device, {"name": "recorded", "file": str(path)})
    path.unlink()
    assert rules(folder) == ("ok", set())


def setting(column: str, value: Any) -> Callable[[Any], None]:
    def change(rows: Any) -> None:
        rows[column][100:110] = value

    return change


CHANGED_ROWS: dict[str, tuple[Callable[[Any], None], set[str]]] = {
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
def test_changed_rows_are_noticed(
    forged: Path, change: Callable[[Any], None], expected: set[str], hashed: bool
) -> None:
    rewrite(forged, lambda rows: (change(rows), None)[1], hashed=hashed)
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert expected <= found


@pytest.mark.parametrize(("column", "value"), [("force", 2.0), ("buttons", 6), ("marker", 2), ("hand_force", 1.0)])
def test_what_nothing_depends_on_is_noticed_by_the_hash(forged: Path, column: str, value: Any) -> None:
    """The force on an impedance device, buttons that are no dead-man's, markers: the element has no use for them."""
    rewrite(forged, setting(column, value), hashed=False)
    assert rules(forged) == ("violated", {"hash"})


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("left", [slice(0, 300), slice(0, 0), slice(200, None), slice(0, 1)])
def test_missing_rows_leave_it_incomplete(forged: Path, left: slice, hashed: bool) -> None:
    rewrite(forged, lambda rows: rows[left], hashed=hashed)
    verdict, found = rules(forged)
    assert verdict == "incomplete"
    assert {"rows", "certificate"} <= found


def test_rows_missing_from_a_recording_that_says_it_had_no_more_are_noticed(forged: Path) -> None:
    rewrite(forged, lambda rows: rows[:200], hashed=True)
    describe(forged, lambda metadata: metadata["certificate"].update(ticks=200))
    assert rules(forged)[0] == "violated"  # the rest of the certificate


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            metadata = metadata[parent]
        metadata[last] = value

    return change


FORGED: list[tuple[str, Any, str]] = [
    ("certificate.overruns", 7, "certificate"),
    ("certificate.skipped", 0, "certificate"),
    ("certificate.period_error_us", {"p50": 1.0}, "certificate"),
    ("certificate.tick_us.max", 1.0, "certificate"),
    ("certificate.longest_gap_us", 5.0, "certificate"),
    ("certificate.fit", False, "certificate"),
    ("certificate.scheduling", "fifo", "certificate"),
    ("certificate.histograms.tick_us", [0] * 60, "certificate"),
    ("flags", {}, "certificate"),
    ("force_n.max", 1.0, "certificate"),
    ("stick_fraction", 2, "certificate"),
    ("certificate.ticks", 500, "rows"),
    ("configuration.law.force", 3.0, "configuration"),
    ("configuration.element.stiffness", 3.0, "configuration"),
    ("configuration.session.rate", 500.0, "configuration"),
    ("configuration.session.model", "B", "configuration"),
    ("model", "B", "configuration"),
    ("configuration.envelope", {}, "limits"),
    ("limits.max_energy", 0.05, "limits"),
    ("limits.max_force", 3.0, "limits"),
    ("device.mass", 0.3, "device"),
    ("device.identity", "another", "device"),
    ("device.name", "virtual-arm", "configuration"),
    ("columns.time", "ms", "columns"),
    ("columns.gate", "N", "columns"),
    ("columns", {}, "columns"),
    ("columns.pressure", "Pa", "columns"),
    ("origin_monotonic_ns", 0, "origin"),
    ("origin_monotonic_ns", 1.5e12, "origin"),
    ("origin_monotonic_ns", True, "origin"),
    ("origin_utc", "yesterday", "origin"),
    ("origin_utc", "2026-01-01T00:00:00.000000", "origin"),
    ("origin_utc", 5, "origin"),
    ("rate_hz", 500.0, "time"),
]


@pytest.mark.parametrize(("path", "value", "rule"), FORGED, ids=[path for path, _, _ in FORGED])
def test_a_forged_description_is_noticed(forged: Path, path: str, value: Any, rule: str) -> None:
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
def test_what_could_not_be_checked_leaves_it_incomplete(forged: Path, change: Any, rule: str) -> None:
    describe(forged, change)
    verdict, found = rules(forged)
    assert verdict == "incomplete"
    assert rule in found


def test_a_recording_without_a_hash_says_so_and_is_judged_by_the_rest(forged: Path) -> None:
    describe(forged, lambda metadata: [metadata.pop("rows_sha256"), metadata["certificate"].pop("longest_gap_us")])
    assert rules(forged) == ("ok", {"hash"})
    rewrite(forged, setting("time", 3.0), hashed=False)
    assert rules(forged)[0] == "violated"


@pytest.mark.parametrize("program", ["0" * 64, None])
def test_the_data_sheet_of_another_version_is_named_and_no_forgery(forged: Path, program: str | None) -> None:
    describe(forged, put("device.mass", 0.3))
    assert rules(forged) == ("violated", {"device"})
    describe(forged, put("program_sha256", program))
    assert rules(forged) == ("ok", {"device"})


def without(*names: str) -> Callable[[Any], Any]:
    def change(rows: Any) -> Any:
        return np.lib.recfunctions.repack_fields(rows[[name for name in rows.dtype.names if name not in names]])

    return change


def test_a_column_that_its_format_did_not_have_is_not_missed(forged: Path) -> None:
    rewrite(forged, without(*FORMATS), hashed=True)
    assert rules(forged) == ("violated", {"columns"})  # described, and not there
    describe(forged, lambda metadata: [metadata["columns"].pop(name) for name in FORMATS])
    assert rules(forged) == ("incomplete", {"columns"})
    describe(forged, lambda metadata: [metadata.pop("origin_utc"), metadata.update(format=2)])
    assert rules(forged) == ("ok", set())


def test_columns_of_others_are_no_violation_if_they_are_described(forged: Path) -> None:
    def add(rows: Any) -> Any:
        return np.lib.recfunctions.append_fields(rows, "pressure", np.arange(len(rows)) * 0.5, usemask=False)

    rewrite(forged, add, hashed=True)
    assert rules(forged) == ("violated", {"columns"})
    describe(forged, lambda metadata: metadata["columns"].update(pressure="Pa"))
    assert rules(forged) == ("ok", set())
    assert Recording(forged).rows["pressure"][3] == 1.5


@pytest.fixture(scope="module")
def honest_arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("arm") / "run", "virtual-arm")


def test_a_recording_has_the_channels_of_its_device(honest_arm: Path) -> None:
    rows = Recording(honest_arm).rows
    assert np.isfinite(rows["channel_raw_wrench"]).all()
    assert rows["channel_joint_angles"].shape == (TICKS_RUN - 2, 2)
    assert np.ptp(rows["channel_motor_torques"], axis=0).min() > 0.0


@pytest.mark.parametrize(
    ("channels", "rule"),
    [
        ([["joint_angles", "rad", 2], ["motor_torques", "N m", 2]], "device"),  # the third is one of others then
        ([["joint_angles", "deg", 2], ["motor_torques", "N m", 2], ["raw_wrench", "N, N m", 6]], "columns"),
        ([["joint_angles", "rad", 1], ["motor_torques", "N m", 2], ["raw_wrench", "N, N m", 6]], "columns"),
        ([["joint_angles", "rad", 2], ["more", "V", 1]], "columns"),
    ],
)
def test_channels_that_are_not_those_of_the_table_are_noticed(
    honest_arm: Path, tmp_path: Path, channels: list[Any], rule: str
) -> None:
    shutil.copytree(honest_arm, tmp_path / "forged")
    describe(tmp_path / "forged", put("device.channels", channels))
    verdict, found = rules(tmp_path / "forged")
    assert verdict == "violated"
    assert rule in found


@pytest.mark.parametrize("channels", [5, [5], [["joint_angles", "rad"]], [["Tick", "1", 1]], [["a", "V", 10**9]]])
def test_channels_that_no_device_can_have_are_refused(forged: Path, channels: Any) -> None:
    describe(forged, put("device.channels", channels))
    with pytest.raises(HapticError, match="channel"):
        examine(Recording(forged))
    rewrite(forged, lambda rows: rows[:0], hashed=True)  # nothing to compute again
    verdict, found = rules(forged)
    assert verdict == "violated"
    assert "columns" in found


def test_journals_of_settings_that_are_not_in_order_are_noticed(forged: Path) -> None:
    path = forged / SETTINGS
    path.write_text(path.read_text() * 2)
    assert rules(forged) == ("violated", {"settings"})


@pytest.mark.parametrize("value", [4, 10**9, "3", 3.0, True, None, 0])
def test_another_format_is_refused(forged: Path, value: Any) -> None:
    describe(forged, put("format", value))
    with pytest.raises(RecordingError, match="this version reads up to 3"):
        Recording(forged)


def test_the_command_says_the_verdict_and_what_was_found(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    (forged / TICKS).rename(forged / PART)
    rewrite_part = np.load(forged / PART)
    rewrite_part["command"][5] += 1.0
    with open(forged / PART, "wb") as file:
        np.save(file, rewrite_part)
    assert cli.main(["replay", str(forged), "--verify"]) == 1
    said = capsys.readouterr().out
    assert "1 differ, the first is tick 5" in said
    assert said.endswith("verdict: violated\n")
