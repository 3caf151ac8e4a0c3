from __future__ import annotations

import csv
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.export import writers
from apps.export.table import Piece, Table
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.flat import flat_columns
from haptics.recording.recording import Recording
from haptics.settings import unit_suffix
from tests.sampling import sample

FORMATS = ("csv", "parquet", "mat", "mcap")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of model C on the virtual joystick, recorded."""
    parent = tmp_path_factory.mktemp("recordings")
    settings = ("--set", "session.picture=false", "--set", "law.force=3")
    asked = ("run", "--device", "virtual-joystick", "--model", "C", "--headless", "--clock", "off", "--duration", "1")
    assert main([*asked, *settings, "--record", str(parent)]) == 0
    (found,) = parent.iterdir()
    return found


def read_csv(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert all(len(line) == len(head) for line in lines)
    cells = np.array([[float(cell) if cell else np.nan for cell in line] for line in lines])
    return dict(zip(head, cells.T, strict=True))


def read_parquet(path: Path) -> dict[str, np.ndarray]:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(path)
    assert json.loads(frame.attrs["recording"])["rate_hz"] == 1000.0
    return {name: frame[name].to_numpy() for name in frame}


def read_mat(path: Path) -> dict[str, np.ndarray]:
    from scipy.io import loadmat

    found = loadmat(path)
    assert json.loads(str(found["recording"][0]))["rate_hz"] == 1000.0
    return {name: found[name][:, 0] for name in found if not name.startswith("__") and name != "recording"}


def read_mcap(path: Path) -> dict[str, np.ndarray]:
    reading = pytest.importorskip("mcap.reader")
    with path.open("rb") as file:
        messages = list(reading.make_reader(file).iter_messages())
    assert {channel.topic for _, channel, _ in messages} == {"/haptics/tick"}
    stamps = np.array([message.log_time for _, _, message in messages])
    assert (np.diff(stamps) == 1_000_000).all()
    rows = [json.loads(message.data) for _, _, message in messages]
    return {name: np.array([np.nan if row[name] is None else row[name] for row in rows]) for name in rows[0]}


PACKAGES = {"parquet": ("pandas", "pyarrow"), "mcap": ("mcap",)}
"""What the extra ``[export]`` has for a format."""

READERS: dict[str, Any] = {"csv": read_csv, "parquet": read_parquet, "mat": read_mat, "mcap": read_mcap}


@pytest.mark.parametrize("kind", sample(FORMATS, 1))
def test_what_was_recorded_is_read_back(kind: str, folder: Path, tmp_path: Path) -> None:
    for package in PACKAGES.get(kind, ()):
        pytest.importorskip(package)
    out = tmp_path / f"ticks.{kind}"
    assert main(["export", str(folder), "--to", kind, "--out", str(out)]) == 0
    found, flat = READERS[kind](out), flat_columns(Recording(folder))
    assert list(found) == list(flat)
    assert len(flat["tick"]) == 1000
    for name, values in flat.items():
        finite = np.where(np.isfinite(values), values, np.nan)
        np.testing.assert_array_equal(found[name].astype(float), finite.astype(float), err_msg=name)
    assert np.abs(found["command_x_n"]).max() > 1.0


def test_columns_have_units_and_one_number_a_cell(folder: Path) -> None:
    recording = Recording(folder)
    flat = flat_columns(recording)
    assert {"tick", "time_s", "position_x_m", "velocity_y_m_per_s", "command_x_n", "status"} <= flat.keys()
    np.testing.assert_array_equal(flat["position_y_m"], recording.rows["position"][:, 1])
    assert all(values.ndim == 1 for values in flat.values())
    recording.metadata["device"]["causality"] = "admittance"
    assert "command_x_m" in flat_columns(recording)


@pytest.mark.parametrize(
    ("unit", "suffix"),
    [("m", "_m"), ("m/s", "_m_per_s"), ("N m", "_nm"), ("rad/s^2", "_rad_per_s2"), ("1", ""), ("bit flags", "")],
)
def test_units_in_names(unit: str, suffix: str) -> None:
    assert unit_suffix(unit) == suffix


def test_a_frame_has_the_columns(folder: Path) -> None:
    pytest.importorskip("pandas")
    frame = Recording(folder).to_frame()
    assert list(frame) == list(flat_columns(Recording(folder)))
    assert len(frame) == 1000


def test_the_result_as_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ticks.csv"
    assert main(["export", str(folder), "--to", "csv", "--out", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["ticks"], answer["format"], answer["file"]) == (1000, "csv", str(out))
    assert answer["columns"][:2] == ["tick", "time_s"]


def test_a_missing_package_is_named_with_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    assert main(["export", str(folder), "--to", "mcap", "--out", str(tmp_path / "a.mcap")]) == 2
    assert "pip install 'haptics[export]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_but_a_file_is_replaced(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(folder), "--to", "csv", "--out", str(tmp_path)]) == 2
    assert "is no file" in capsys.readouterr().err
    assert main(["export", str(folder), "--to", "csv", "--out", str(tmp_path / "nowhere" / "a.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_recording_that_was_cut_short_is_exported(folder: Path, tmp_path: Path) -> None:
    import shutil

    part = tmp_path / "part"
    shutil.copytree(folder, part)
    (part / "ticks.npy").rename(part / "ticks.npy.part")
    data = (part / "ticks.npy.part").read_bytes()
    (part / "ticks.npy.part").write_bytes(data[: len(data) // 2 - 7])
    out = tmp_path / "part.csv"
    assert main(["export", str(part), "--to", "csv", "--out", str(out)]) == 0
    assert 400 < len(read_csv(out)["tick"]) < 500


# --- in pieces -------------------------------------------------------------------------------------------------------


def numbers(count: int, seed: int = 1) -> np.ndarray:
    """Return numbers of every size and kind that a float can have."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64).view("f8")
    scaled = rng.normal(size=count) * 10.0 ** rng.integers(-12, 20, count)
    rounded = np.round(rng.normal(size=count) * 10.0 ** rng.integers(-3, 16, count), 3)
    powers = 10.0 ** np.arange(-323, 309)
    return np.concatenate((bits, scaled, rounded, powers, -powers, [0.0, -0.0, 5e-324, np.nan, np.inf, 1e22]))


def lines_of(values: np.ndarray, *, pyarrow: bool) -> list[str]:
    text_of = writers._text_by_pyarrow() if pyarrow else writers._text_of
    return text_of({"x": values}).decode().split("\r\n")[:-1]


@pytest.mark.parametrize("pyarrow", [True, False])
def test_text_of_a_number_reads_back_to_the_same_bits(pyarrow: bool) -> None:
    if pyarrow:
        pytest.importorskip("pyarrow")
    values = numbers(20_000)
    lines = lines_of(values, pyarrow=pyarrow)
    finite = np.isfinite(values)
    read = np.array([float(line) if line else np.nan for line in lines])
    np.testing.assert_array_equal(read[finite].view("u8"), values[finite].view("u8"))
    assert np.isnan(read[~finite]).all()


def test_text_of_a_number_has_no_digit_too_many() -> None:
    values = [value for value in numbers(5000) if np.isfinite(value) and value != 0.0]
    for line, value in zip(lines_of(np.array(values), pyarrow=False), values, strict=True):
        digits = line.partition("e")[0].lstrip("-").replace(".", "").strip("0")
        shortest = repr(float(value)).partition("e")[0].lstrip("-").replace(".", "").strip("0")
        assert digits == shortest


def test_text_is_the_same_without_pyarrow() -> None:
    pytest.importorskip("pyarrow")
    values = numbers(50_000)
    assert lines_of(values, pyarrow=True) == lines_of(values, pyarrow=False)
    single = np.random.default_rng(3).normal(size=500).astype("f4")
    whole = np.arange(-5, 5, dtype=np.int64)
    assert lines_of(single, pyarrow=True) == lines_of(single, pyarrow=False)
    assert lines_of(whole, pyarrow=True) == [str(k) for k in range(-5, 5)]


@pytest.fixture
def long(folder: Path) -> Recording:
    """A recording with more rows than the writers look at together."""
    recording = Recording(folder)
    recording.rows = np.tile(recording.read(), 50)
    return recording


@pytest.mark.parametrize("kind", ["csv", "parquet", "mat"])
def test_file_does_not_depend_on_the_size_of_the_pieces(
    kind: str, long: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in PACKAGES.get(kind, ()):
        pytest.importorskip(package)
    writers.write(Table.of(long), kind, tmp_path / "a")
    monkeypatch.setattr(writers, "_ROWS_AT_ONCE", 777)
    monkeypatch.setattr(writers, "_FEW", 10**9)
    writers.write(Table.of(long), kind, tmp_path / "b")
    one, other = (path.read_bytes() for path in (tmp_path / "a", tmp_path / "b"))
    assert one[128:] == other[128:]  # a MATLAB file begins with the time at which it was made


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 50_000])
def test_matlab_file_is_the_one_that_scipy_writes(length: int, long: Recording, tmp_path: Path) -> None:
    from scipy.io import savemat

    long.rows = long.rows[:length]
    table = Table.of(long)
    writers.write(table, "mat", tmp_path / "ours.mat")
    columns = {"recording": table.description, **flat_columns(long)}
    savemat(tmp_path / "theirs.mat", columns, long_field_names=True, do_compression=True, oned_as="column")
    assert (tmp_path / "ours.mat").read_bytes()[128:] == (tmp_path / "theirs.mat").read_bytes()[128:]


def test_too_many_ticks_for_matlab_are_refused_before_anything_is_written(
    long: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_LARGEST_VARIABLE", 100_000)
    with pytest.raises(ConfigurationError, match="50000 ticks are more than a MATLAB 5 file can hold"):
        writers.write(Table.of(long), "mat", tmp_path / "a.mat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", FORMATS)
def test_error_in_the_middle_leaves_no_file(kind: str, long: Recording, tmp_path: Path) -> None:
    for package in PACKAGES.get(kind, ()):
        pytest.importorskip(package)
    table = Table.of(long)

    def broken(rows: int) -> Iterator[Piece]:
        yield from itertools.islice(table.pieces(rows), 1)
        raise RecordingError("it was cut short while it was read.")

    with pytest.raises(RecordingError):
        writers.write(replace(table, pieces=broken), kind, tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("kind", "pyarrow"), [("csv", True), ("csv", False), ("mat", False)])
def test_memory_does_not_grow_with_the_length(
    kind: str, pyarrow: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times the rows; how many of the chunks in flight are in memory at once depends on the threads."""
    if pyarrow:
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(writers, "_FEW", 0 if pyarrow else 10**9)
    monkeypatch.setattr(writers, "_ROWS_AT_ONCE", 250)
    short, wanted = Recording(folder).read(), Recording(folder)

    def peak(copies: int) -> int:
        wanted.rows = np.tile(short, copies)
        table = Table.of(wanted)
        tracemalloc.start()
        writers.write(table, kind, tmp_path / f"a.{kind}")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    assert peak(12) < 1.5 * peak(4)
