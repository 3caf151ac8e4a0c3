"""The commands ``haptics export`` and ``haptics pack``."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from apps.cli import main
from apps.export import writers
from apps.export.writers import Table
from apps.pack.packing import pack, unpack
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import PACKED, TICKS, Recording, flat_columns
from haptics.settings import unit_suffix
from tests.recordings import KEPT, record_offline

# --- export -----------------------------------------------------------------------------------------------------------

FORMATS = ("csv", "parquet", "mat", "mcap")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return record_offline(tmp_path_factory.mktemp("recordings"), "--set", "law.force=3")


def answer(capsys, *arguments):
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert all(len(line) == len(head) for line in lines)
    cells = np.array([[float(cell) if cell else np.nan for cell in line] for line in lines])
    return dict(zip(head, cells.T, strict=True))


def read_parquet(path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(path)
    assert json.loads(frame.attrs["recording"])["rate_hz"] == 1000.0
    return {name: frame[name].to_numpy() for name in frame}


def read_mcap(path):
    reading = pytest.importorskip("mcap.reader")
    with path.open("rb") as file:
        messages = list(reading.make_reader(file).iter_messages())
    assert {channel.topic for _, channel, _ in messages} == {"/haptics/tick"}
    stamps = np.array([message.log_time for _, _, message in messages])
    assert (np.diff(stamps) == 1_000_000).all()
    rows = [json.loads(message.data) for _, _, message in messages]
    return {name: np.array([np.nan if row[name] is None else row[name] for row in rows]) for name in rows[0]}


def require_packages(kind):
    for package in {"parquet": ("pandas", "pyarrow"), "mcap": ("mcap",)}.get(kind, ()):
        pytest.importorskip(package)


READERS: dict[str, Any] = {"csv": read_csv, "parquet": read_parquet, "mcap": read_mcap}


@pytest.mark.parametrize("kind", READERS)
def test_file_holds_every_column(kind, folder, tmp_path, capsys):
    require_packages(kind)
    out = tmp_path / f"ticks.{kind}"
    result = answer(capsys, "export", str(folder), "--to", kind, "--out", str(out))
    found, flat = READERS[kind](out), flat_columns(Recording(folder))
    assert (result["ticks"], result["format"], result["file"]) == (1000, kind, str(out))
    assert result["columns"] == list(flat)
    assert list(found) == list(flat)
    for name, values in flat.items():
        finite = np.where(np.isfinite(values), values, np.nan)
        np.testing.assert_array_equal(found[name].astype(float), finite.astype(float), err_msg=name)
    assert np.abs(found["command_x_n"]).max() > 1.0


def test_columns_have_units_and_one_number_a_cell(folder):
    recording = Recording(folder)
    flat = flat_columns(recording)
    assert {"tick", "time_s", "position_x_m", "velocity_y_m_per_s", "command_x_n", "status"} <= flat.keys()
    np.testing.assert_array_equal(flat["position_y_m"], recording.rows["position"][:, 1])
    assert all(values.ndim == 1 for values in flat.values())
    if importlib.util.find_spec("pandas"):
        frame = recording.to_frame()
        assert (list(frame), len(frame)) == (list(flat), 1000)
    recording.metadata["device"]["causality"] = "admittance"
    assert "command_x_m" in flat_columns(recording)


def test_column_names_end_with_their_unit():
    suffixes = {"m": "_m", "m/s": "_m_per_s", "N m": "_nm", "rad/s^2": "_rad_per_s2", "1": "", "bit flags": ""}
    assert {unit: unit_suffix(unit) for unit in suffixes} == suffixes


def test_missing_package_is_named_with_its_extra(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    assert main(["export", str(folder), "--to", "mcap", "--out", str(tmp_path / "a.mcap")]) == 2
    assert "pip install 'haptics[export]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_output_must_be_a_writable_file(folder, tmp_path, capsys):
    assert main(["export", str(folder), "--to", "csv", "--out", str(tmp_path)]) == 2
    assert "is no file" in capsys.readouterr().err
    assert main(["export", str(folder), "--to", "csv", "--out", str(tmp_path / "nowhere" / "a.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_truncated_recording_is_exported(run, tmp_path):
    data = (run / TICKS).read_bytes()
    (run / TICKS).unlink()
    (run / f"{TICKS}.part").write_bytes(data[: len(data) // 2 - 7])
    out = tmp_path / "part.csv"
    assert main(["export", str(run), "--to", "csv", "--out", str(out)]) == 0
    assert 400 < len(read_csv(out)["tick"]) < 500


# --- in pieces -------------------------------------------------------------------------------------------------------


def numbers(count, seed=1):
    """Return floats of all magnitudes, NaN, infinities and subnormal numbers."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64).view("f8")
    scaled = rng.normal(size=count) * 10.0 ** rng.integers(-12, 20, count)
    rounded = np.round(rng.normal(size=count) * 10.0 ** rng.integers(-3, 16, count), 3)
    powers = 10.0 ** np.arange(-323, 309)
    return np.concatenate((bits, scaled, rounded, powers, -powers, [0.0, -0.0, 5e-324, np.nan, np.inf, 1e22]))


def lines_of(values, *, pyarrow):
    text_of = writers._text_by_pyarrow() if pyarrow else writers._text_of
    return text_of({"x": values}).decode().split("\r\n")[:-1]


def test_text_of_a_number_is_the_shortest_that_reads_back_to_the_same_bits():
    def digits(text):
        return text.partition("e")[0].lstrip("-").replace(".", "").strip("0")

    values = numbers(20_000)
    lines = lines_of(values, pyarrow=False)
    finite = np.isfinite(values)
    read = np.array([float(line) if line else np.nan for line in lines])
    np.testing.assert_array_equal(read[finite].view("u8"), values[finite].view("u8"))
    assert np.isnan(read[~finite]).all()
    assert [digits(line) for line in lines if line] == [digits(repr(value)) for value in values[finite].tolist()]


def test_text_is_the_same_without_pyarrow():
    pytest.importorskip("pyarrow")
    values = numbers(50_000)
    assert lines_of(values, pyarrow=True) == lines_of(values, pyarrow=False)
    single = np.random.default_rng(3).normal(size=500).astype("f4")
    whole = np.arange(-5, 5, dtype=np.int64)
    assert lines_of(single, pyarrow=True) == lines_of(single, pyarrow=False)
    assert lines_of(whole, pyarrow=True) == [str(k) for k in range(-5, 5)]


@pytest.fixture
def long(folder):
    """Return a recording with more rows than a writer handles at a time."""
    recording = Recording(folder)
    recording.rows = np.tile(recording.read(), 50)
    return recording


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 50_000])
def test_matlab_file_equals_that_of_scipy(length, long, tmp_path):
    long.rows = long.rows[:length]
    table = Table.of(long)
    writers.write(table, "mat", tmp_path / "ours.mat")
    columns = {"recording": table.description, **flat_columns(long)}
    savemat(tmp_path / "theirs.mat", columns, long_field_names=True, do_compression=True, oned_as="column")
    assert (tmp_path / "ours.mat").read_bytes()[128:] == (tmp_path / "theirs.mat").read_bytes()[128:]


def test_too_many_ticks_for_matlab(long, tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "_LARGEST_VARIABLE", 100_000)
    with pytest.raises(ConfigurationError, match="50000 ticks are more than a MATLAB 5 file can hold"):
        writers.write(Table.of(long), "mat", tmp_path / "a.mat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", FORMATS)
def test_export_error_leaves_no_file(kind, long, tmp_path):
    require_packages(kind)
    table = Table.of(long)

    def broken(rows):
        yield from itertools.islice(table.pieces(rows), 1)
        raise RecordingError("it was cut short while it was read.")

    with pytest.raises(RecordingError):
        writers.write(replace(table, pieces=broken), kind, tmp_path / "a")
    assert not list(tmp_path.iterdir())


# --- pack -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(folder, tmp_path):
    """Return a copy of the recording that a test may change."""
    return Path(shutil.copytree(folder, tmp_path / "run"))


def test_recording_is_packed_and_restored(run, capsys):
    before, size = (run / TICKS).read_bytes(), (run / TICKS).stat().st_size
    told = answer(capsys, "pack", str(run))
    left = (run / PACKED).stat().st_size
    assert told == {"recordings": 1, "bytes": left - size, "size": left}
    assert left < 0.45 * size
    assert not (run / TICKS).exists()
    assert answer(capsys, "pack", str(run))["recordings"] == 0
    assert answer(capsys, "pack", str(run), "--undo") == {"recordings": 1, "bytes": size - left, "size": size}
    assert (run / TICKS).read_bytes() == before
    assert not (run / PACKED).exists()


COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "{folder}"),
    "replay": ("replay", "{folder}", "--headless"),
    "replay --verify": ("replay", "{folder}", "--verify"),
    "compare": ("compare", "{folder}", "{folder}", "--out", "{out}.png"),
    "again": ("compare", "{folder}", "--with", "law.force=1", "--open-loop"),
    "csv": ("export", "{folder}", "--to", "csv", "--out", "{out}.csv"),
    "mat": ("export", "{folder}", "--to", "mat", "--out", "{out}.mat"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_reads_packed_ticks(run, tmp_path, name, capsys):
    arguments = [part.format(folder=run, out=tmp_path / "out") for part in COMMANDS[name]]
    whole = answer(capsys, *arguments)
    files = {path.name: path.read_bytes()[128:] for path in tmp_path.glob("out*")}
    pack(run)
    assert answer(capsys, *arguments) == whole
    assert {path.name: path.read_bytes()[128:] for path in tmp_path.glob("out*")} == files


@pytest.mark.parametrize("kept", [path for path in KEPT if (path / TICKS).exists()], ids=lambda path: path.name)
def test_recording_of_an_older_format_is_packed(kept, tmp_path, capsys):
    folder = Path(shutil.copytree(kept, tmp_path / "run"))
    before = (folder / TICKS).read_bytes()
    whole = answer(capsys, "verify", str(folder))
    assert pack(folder) > 0
    assert answer(capsys, "verify", str(folder)) == whole
    assert unpack(folder) > 0
    assert (folder / TICKS).read_bytes() == before


def test_changed_packed_ticks_are_found_by_their_hash(run):
    pack(run)
    description = json.loads((run / "recording.json").read_text())
    description["rows_sha256"] = hashlib.sha256(b"other").hexdigest()
    (run / "recording.json").write_text(json.dumps(description))
    assert main(["verify", str(run)]) == 1
    with pytest.raises(RecordingError, match="changed, or not closed"):
        unpack(run)


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_pack_error_loses_nothing(run, undo, moment, monkeypatch):
    rows = Recording(run).read()
    if undo:
        pack(run)

    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, moment, broken)
    with pytest.raises(OSError, match="No space left"):
        (unpack if undo else pack)(run)
    monkeypatch.undo()
    assert [path.name for path in run.glob(".*")] == []
    assert Recording(run).read().tobytes() == rows.tobytes()


def test_pack_continues_after_a_kill_between_both_files(run, monkeypatch):
    rows = Recording(run).read()
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        pack(run)
    assert (run / TICKS).exists() and (run / PACKED).exists()
    assert Recording(run).ticks.name == TICKS
    assert pack(run) > 0
    assert Recording(run).ticks.name == PACKED
    assert Recording(run).read().tobytes() == rows.tobytes()


def test_pack_replaces_the_partial_file_of_a_killed_program(run):
    (run / f".{PACKED}.part").write_bytes(b"half")
    assert pack(run) > 0
    assert unpack(run) > 0
    assert list(run.glob(".*")) == []


def test_pack_leaves_unclosed_recordings_and_refuses_other_folders(run, tmp_path, capsys):
    assert main(["pack", str(run), str(tmp_path)]) == 2
    assert "is not a readable recording" in capsys.readouterr().err
    (run / TICKS).rename(run / "ticks.npy.part")
    assert pack(run) == 0
    assert sorted(path.name for path in run.glob("ticks*")) == ["ticks.npy.part"]
