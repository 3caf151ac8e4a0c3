"""The command ``haptics compare``."""

import json

import numpy as np
import pytest

from apps.cli import main
from apps.compare.again import open_loop, twice
from apps.compare.comparison import COMPARED, Comparison, _thinned, figures
from haptics.errors import ConfigurationError, HapticError
from haptics.recording.recording import Recording
from haptics.recording.tick_file import TableInMemory
from haptics.records import ROW
from tests.recordings import record_offline

# --- recordings -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    parent = tmp_path_factory.mktemp("recordings")
    return {
        "three": record_offline(parent, "--set", "law.force=3"),
        "four": record_offline(parent, "--set", "law.force=4"),
    }


def test_other_force_is_reported(recordings, tmp_path, capsys):
    folders, out = [str(recordings["three"]), str(recordings["four"])], tmp_path / "both.png"
    capsys.readouterr()
    assert main(["compare", *folders]) == 0
    words = capsys.readouterr().out
    assert "law.force: 3 | 4" in words and "command: differs from tick" in words
    assert max(map(len, words.splitlines()[3:])) <= 100
    assert main(["compare", *folders, "--json", "--out", str(out)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["picture"] == str(out)
    assert out.read_bytes().startswith(b"\x89PNG") and out.stat().st_size > 20_000
    assert answer["settings"] == {"law.force": {"a": 3.0, "b": 4.0}}
    figures = {row["name"]: row for row in answer["figures"]}
    sliding = figures["friction while sliding, mean"]
    assert sliding["a"] == pytest.approx(3.0, rel=1e-9)
    assert sliding["b"] == pytest.approx(4.0, rel=1e-9)
    differences = {row["column"]: row for row in answer["differences"]}
    one, other = (Recording(recordings[name]).rows for name in ("three", "four"))
    unlike = np.flatnonzero((one["command"] != other["command"]).any(axis=1))
    assert differences["command"]["first_tick"] == unlike[0]
    lengths = np.hypot(*(one["position"] - other["position"]).T)
    assert differences["position"]["largest"] == pytest.approx(lengths.max())


def test_only_common_ticks_are_compared(recordings):
    a, b = Recording(recordings["three"]), Recording(recordings["three"])
    b.rows = b.rows[500:]
    found = Comparison.of(a, b)
    assert found.ticks == 500
    assert "500 ticks that both have" in found.describe()
    a.rows = a.rows[:500]
    assert "0 ticks that both have" in Comparison.of(a, b).describe()
    b.rows = b.rows[:0]
    with pytest.raises(HapticError, match="has no ticks"):
        Comparison.of(a, b)


def test_first_different_tick_is_named_and_the_folder_is_no_setting(recordings):
    a, b = Recording(recordings["three"]), Recording(recordings["three"])
    b.metadata["configuration"]["session"] |= {"record": "elsewhere", "picture": True}
    b.rows = np.array(b.rows[400:])
    b.rows["command"][200] += 1.0
    found = Comparison.of(a, b)
    assert found.settings == {}
    parted = {one.column: one.first_tick for one in found.differences if one.first_tick is not None}
    assert parted == {"command": 600}


@pytest.fixture
def recording(recordings):
    return Recording(recordings["three"])


# --- other settings ---------------------------------------------------------------------------------------------------


def test_mouse_run_is_repeated_along_its_path(recording, tmp_path):
    recording.metadata["configuration"]["device"]["hand"] = {"name": "mouse"}
    first, second = twice(recording, ["law.force=1.5"], tmp_path / "runs")
    assert first.metadata["configuration"]["device"]["hand"]["name"] == "recorded"
    way = np.hypot(*(first.rows["position"] - recording.rows["position"]).T)
    assert np.percentile(way, 95) < 0.005
    assert (second.rows["position"] != first.rows["position"]).any()


def test_open_loop_with_the_same_settings_equals_the_recording(recording):
    pieces, _ = open_loop(recording, [])
    rows = np.concatenate(list(pieces))
    assert rows["friction_force"] == pytest.approx(recording.rows["friction_force"], abs=1e-12)
    assert rows["proxy"] == pytest.approx(recording.rows["proxy"], abs=1e-12)
    assert (rows["command"] == 0.0).all(), "no command was sent"


def test_open_loop_applies_another_law_to_the_same_motion(recording):
    pieces, config = open_loop(recording, ["law.name=coulomb-viscous", "law.force=2", "law.viscosity=4"])
    rows = np.concatenate(list(pieces))
    assert config.law["name"] == "coulomb-viscous"
    assert (rows["position"] == recording.rows["position"]).all()
    speed, force = (np.hypot(*rows[name].T) for name in ("sliding_velocity", "friction_force"))
    sliding = (rows["sticking"] == 0) & (speed > 0.02)
    assert force[sliding] == pytest.approx(2.0 + 4.0 * speed[sliding], rel=1e-6)


def test_command_reports_the_open_loop(recording, capsys):
    arguments = ["compare", str(recording.folder), "--with", "law.force=1", "--open-loop"]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["open_loop"] == ["law.force=1"]
    figures = {row["name"]: row for row in answer["figures"]}
    assert figures["path of the end effector"]["a"] == figures["path of the end effector"]["b"]
    assert main(arguments) == 0
    assert "LOOP OPEN" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [[], ["B", "--with", "law.force=1"], ["B", "--open-loop"], ["--with", "law.force=-1"], ["--with", "nothing"]],
)
def test_invalid_arguments_are_refused(recording, more):
    given = [str(recording.folder) if word == "B" else word for word in more]
    assert main(["compare", str(recording.folder), *given]) == 2


def test_recording_without_its_configuration_cannot_be_repeated(recording, tmp_path):
    del recording.metadata["configuration"]
    with pytest.raises(ConfigurationError, match="cannot be run again"):
        twice(recording, ["law.force=1"], tmp_path)


# --- chunks -----------------------------------------------------------------------------------------------------------


def make_rows(seed, count=1000):
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, ROW)
    rows["tick"] = np.cumsum(rng.choice([1, 1, 3], count))
    for name in COMPARED:
        rows[name] = rng.normal(size=(count, 2))
    rows["sticking"] = rng.random(count) < 0.4
    for name in ("period_error", "tick_time", "sample_age", "injected_energy"):
        rows[name] = rng.random(count)
    rows["force"][::7], rows["friction_force"][5] = np.nan, np.inf
    return rows


@pytest.fixture
def pair(recordings):
    found = Recording(recordings["three"]), Recording(recordings["four"])
    for seed, recording in enumerate(found, 1):
        recording.rows = make_rows(seed)
    return found


def set_chunk_size(monkeypatch, size):
    whole = TableInMemory.chunks

    def chunks(self, columns=None, rows=size, **where):
        return whole(self, columns, min(rows, size), **where)

    monkeypatch.setattr(TableInMemory, "chunks", chunks)


@pytest.mark.parametrize("size", [1, 7, 400])
def test_result_does_not_depend_on_the_chunk_size(pair, monkeypatch, size):
    whole = Comparison.of(*pair)
    set_chunk_size(monkeypatch, size)
    pieces = Comparison.of(*pair)
    assert pieces.ticks == whole.ticks > 100
    assert [one[:2] for one in pieces.figures] == [one[:2] for one in whole.figures]
    for one, other in zip(pieces.figures, whole.figures, strict=True):
        assert one[2:] == pytest.approx(other[2:], rel=1e-13)
    for one, other in zip(pieces.differences, whole.differences, strict=True):
        assert (one.column, one.first_tick, one.largest) == (other.column, other.first_tick, other.largest)
        assert one.rms == pytest.approx(other.rms, rel=1e-13)


def test_figures_and_differences_cover_all_rows(pair, monkeypatch):
    set_chunk_size(monkeypatch, 90)
    found = {name: a for name, _, a, _ in figures(*pair)}
    rows = make_rows(1)
    force = np.hypot(*rows["friction_force"].T)
    sliding = force[(rows["sticking"] == 0) & np.isfinite(force)]
    assert found["ticks"] == 1000
    assert found["path of the end effector"] == pytest.approx(np.hypot(*np.diff(rows["position"], axis=0).T).sum())
    assert found["friction while sliding, mean"] == pytest.approx(sliding.mean())
    assert found["friction while sliding, std"] == pytest.approx(sliding.std())
    assert found["friction, largest"] == force[np.isfinite(force)].max()
    assert found["share of sticking"] == np.mean(rows["sticking"])
    assert found["start delay, p99"] == pytest.approx(1e6 * np.percentile(rows["period_error"], 99.0), rel=1e-12)
    _, one, other = np.intersect1d(make_rows(1)["tick"], make_rows(2)["tick"], return_indices=True)
    apart = np.linalg.norm(make_rows(1)["position"][one] - make_rows(2)["position"][other], axis=1)
    position = {row.column: row for row in Comparison.of(*pair).differences}["position"]
    assert position.largest == apart.max()
    assert position.rms == pytest.approx(np.sqrt(np.mean(apart**2)))
    assert position.first_tick == make_rows(1)["tick"][one[0]]


def test_rows_with_decreasing_ticks_are_left_out(pair, monkeypatch):
    rows = make_rows(1)
    rows["tick"][500] = 3
    pair[0].rows, pair[1].rows = rows, make_rows(1)
    set_chunk_size(monkeypatch, 100)
    assert Comparison.of(*pair).ticks == 999


@pytest.mark.parametrize("size", [13, 1000])
def test_picture_is_thinned_evenly(pair, monkeypatch, size):
    monkeypatch.setattr("apps.compare.comparison._MOST_POINTS", 300)
    set_chunk_size(monkeypatch, size)
    np.testing.assert_array_equal(_thinned(pair[0])["position"], make_rows(1)["position"][::4])
