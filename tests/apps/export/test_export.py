from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from haptics.recording.flat import flat_columns
from haptics.recording.recording import Recording
from haptics.settings import unit_suffix

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


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", FORMATS)
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
