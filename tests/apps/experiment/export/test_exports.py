"""Exports of sessions: CSV, psignifit, Psych-DS, BIDS, output folders, and packed recordings."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from apps.cli import main
from apps.experiment.export.formats import counts_of, new_export, write_text
from apps.experiment.journal import Journal, trial_rows
from apps.experiment.journal.blinding import make_codes, seal_codes
from apps.experiment.journal.folder import EXPORT_MANIFEST
from apps.experiment.journal.tables import COLUMNS
from apps.pack.packing import pack, unpack
from haptics.errors import ConfigurationError, RecordingError
from haptics.recording.recording import PACKED, TICKS
from tests.apps.experiment.designs import changed
from tests.apps.experiment.export.sessions import plain_session, recorded_session, rows_of
from tests.apps.experiment.export.validator import bids_errors
from tests.apps.experiment.journal.records import HEADER, begin_block, place, run_trial
from tests.apps.experiment.session.running import simulate


def export(capsys, data, out, form, status=0):
    assert main(["experiment", "export", str(data), "--to", form, "--out", str(out), "--json"]) == status
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.fixture
def data(tmp_path):
    plain_session(tmp_path / "data")
    recorded_session(tmp_path / "data")
    return tmp_path / "data"


def test_csv_export_is_read_by_the_csv_module(data, tmp_path, capsys):
    told = export(capsys, data, tmp_path / "out", "csv")
    assert (told["sessions"], told["participants"], told["trials"]) == (2, 2, 16)
    raw = (tmp_path / "out" / "trials.csv").read_bytes()
    assert raw.count(b"\r\n") == 17
    assert b"nan" not in raw
    with open(tmp_path / "out" / "trials.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    repeated = next(row for row in rows if row["outcome"] == "repeat")
    assert repeated["reasons"] == 'too fast, twice; said "oh"'
    assert (repeated["response"], repeated["correct"], repeated["counts"]) == ("", "", "false")
    assert [row["condition"] for row in rows].count('high, "rough"') == 2
    assert float(next(row for row in rows if row["trial"] == "5")["reaction_time_s"]) == 0.1 + 0.2
    with open(tmp_path / "out" / "participants.csv", encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["participant"], first["observer"], first["field_age_band"]) == ("P01", "", "20-29")
    assert (second["observer"], second["end_reason"]) == ("level-1", "completed")
    assert second["trials"] == "6", "as in the end of the journal, without practice"


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
def test_csv_export_is_read_by_r(data, tmp_path, capsys):
    export(capsys, data, tmp_path / "out", "csv")
    script = (
        'source("read.R"); t <- read_trials("."); p <- read_participants("."); '
        "stopifnot(is.numeric(t$level), is.logical(t$correct), is.na(t$correct[6]), nrow(p) == 2); "
        'cat(nrow(t), sum(t$correct, na.rm = TRUE), sprintf("%.17g", t$reaction_time_s[5]), t$reasons[6], sep = "\\n")'
    )
    command = ["Rscript", "--vanilla", "-e", script]
    done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, right, time, reasons = done.stdout.splitlines()
    assert (count, right, float(time), reasons) == ("16", "12", 0.1 + 0.2, 'too fast, twice; said "oh"')


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
def test_codes_and_letters_of_participants_stay_text_in_r(tmp_path, capsys):
    fields = {"age": "24", "sex": "F", "consent_id": "0012"}
    plain_session(tmp_path / "data", "007", fields=fields)
    export(capsys, tmp_path / "data", tmp_path / "out", "csv")
    script = (
        'source("read.R"); t <- read_trials("."); p <- read_participants("."); '
        'stopifnot(p$participant == "007", p$field_sex == "F", p$field_consent_id == "0012", p$field_age == 24, '
        "is.numeric(p$field_age), is.numeric(p$session), nrow(merge(t, p)) == nrow(t))"
    )
    command = ["Rscript", "--vanilla", "-e", script]
    done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_bids_keeps_fields_with_the_names_of_its_columns(tmp_path, capsys):
    plain_session(tmp_path / "data", fields={"observer": "K2", "age": "24"})
    export(capsys, tmp_path / "data", tmp_path / "out", "bids")
    table = (tmp_path / "out" / "participants.tsv").read_text(encoding="utf-8")
    assert table == "participant_id\tobserver\tage\tfield_observer\nsub-P01\tn/a\t24\tK2\n"
    described = json.loads((tmp_path / "out" / "participants.json").read_text(encoding="utf-8"))
    assert {"observer", "age", "field_observer"} <= described.keys()


def test_psignifit_export_counts_trials_by_level(data, tmp_path, capsys):
    export(capsys, data, tmp_path / "out", "psignifit")
    out = tmp_path / "out"
    names = sorted(path.name for path in out.glob("*.csv"))
    assert names[0] == "sub-P01_ses-01_task-friction_condition-highrough_psignifit.csv"
    assert len(names) == 4
    table = np.genfromtxt(out / names[1], delimiter=",", skip_header=1)
    assert table.tolist() == [[0.25, 2.0, 3.0], [0.5, 1.0, 1.0]]
    assert np.genfromtxt(out / names[0], delimiter=",", skip_header=1).tolist() == [0.25, 1.0, 1.0]


def test_redone_trial_is_counted_once(tmp_path):
    with Journal.create(place(tmp_path), HEADER) as journal:
        begin_block(journal)
        for attempt, outcome in enumerate(("repeat", "ok", "ok"), 1):
            run_trial(journal, 1, attempt, outcome, answer={"correct": attempt < 3})
            if attempt == 2:
                journal.append("event", name="redo", trial=1)
    assert counts_of(trial_rows(journal.place)) == {"low": {0.25: (0, 1)}}


def test_similar_condition_names_get_separate_files(tmp_path, capsys):
    with Journal.create(place(tmp_path / "data"), HEADER) as journal:
        begin_block(journal)
        for trial, condition in enumerate(("low", "lo w", "LOW", "摩"), 1):
            run_trial(journal, trial, condition=condition)
    export(capsys, tmp_path / "data", tmp_path / "out", "psignifit")
    assert len(list((tmp_path / "out").glob("*.csv"))) == 4


def test_psignifit_export_refuses_unscored_answers(tmp_path, capsys):
    with Journal.create(place(tmp_path / "data"), HEADER) as journal:
        begin_block(journal)
        run_trial(journal, 1, answer={"response": 2.5, "correct": None})
    told = export(capsys, tmp_path / "data", tmp_path / "out", "psignifit", status=2)
    assert "right or wrong" in told["error"]
    assert not (tmp_path / "out").exists()


def test_psych_ds_describes_every_column(data, tmp_path, capsys):
    export(capsys, data, tmp_path / "out", "psych-ds")
    told = json.loads((tmp_path / "out" / "dataset_description.json").read_text(encoding="utf-8"))
    assert (told["@context"], told["@type"]) == ("https://schema.org", "Dataset")
    assert "never" in told["description"]
    variables = {one["name"] for one in told["variableMeasured"]}
    files = sorted((tmp_path / "out" / "data").iterdir())
    names = [f"study-friction_participant-P0{number}_session-01_data.csv" for number in (1, 2)]
    assert [path.name for path in files] == names
    for path in files:
        with open(path, encoding="utf-8", newline="") as file:
            assert set(next(csv.reader(file))) <= variables


def test_blind_session_is_exported_only_after_its_end(tmp_path, capsys):
    seal = seal_codes(place(tmp_path / "data"), make_codes([{"condition": "low"}]))
    with Journal.create(place(tmp_path / "data"), HEADER | {"blind": seal}) as journal:
        told = export(capsys, tmp_path / "data", tmp_path / "out", "csv", status=2)
        assert "has not ended" in told["error"]
        journal.append("end", reason="completed", trials=0, repeated=0)
    assert export(capsys, tmp_path / "data", tmp_path / "out", "csv")["sessions"] == 1


def test_duplicate_sessions_are_exported_once_or_refused(data, tmp_path, capsys):
    copy = tmp_path / "copy"
    twice = ["experiment", "export", str(data), str(data / "sub-P01")]
    assert main([*twice, "--to", "csv", "--json", "--out", str(tmp_path / "out")]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == 2
    shutil.copytree(data / "sub-P01", copy)
    assert main([*twice, str(copy), "--to", "csv", "--out", str(tmp_path / "other")]) == 2
    assert "are both sub-P01_ses-01_task-friction" in capsys.readouterr().err


def test_journal_of_another_participant_is_not_exported(data, tmp_path, capsys):
    (data / "sub-P01").rename(data / "sub-P03")
    folder = data / "sub-P03" / "ses-01"
    (found,) = folder.glob("*_journal.jsonl")
    found.rename(folder / found.name.replace("P01", "P03"))
    assert "of participant 'P01'" in export(capsys, data, tmp_path / "out", "csv", status=2)["error"]


ENTITIES = r"sub-[A-Za-z0-9]+_ses-[A-Za-z0-9]+_task-[A-Za-z0-9]+"
NAMES = (
    r"dataset_description\.json|README\.md|participants\.(tsv|json)|\.haptics-export\.json",
    r"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/\1_\2_scans\.tsv",
    rf"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/beh/(?=\1_\2_){ENTITIES}_beh\.(tsv|json)",
    rf"(sub-[A-Za-z0-9]+)/(ses-[A-Za-z0-9]+)/motion/(?=\1_\2_){ENTITIES}_tracksys-[A-Za-z0-9]+_run-[0-9]+"
    r"_(motion\.(tsv|json)|channels\.tsv)",
)
UNITS = {"POS": "m", "VEL": "m/s", "LATENCY": "s"}


@pytest.fixture
def dataset(data, tmp_path):
    assert main(["experiment", "export", str(data), "--to", "bids", "--out", str(tmp_path / "bids")]) == 0
    return tmp_path / "bids"


def table(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    cells = [line.split("\t") for line in lines]
    assert len({len(row) for row in cells}) == 1, path
    assert all(cell for row in cells for cell in row), f"{path}: an empty cell must be n/a"
    return cells


def test_bids_file_names_and_participants(dataset):
    names = [path.relative_to(dataset).as_posix() for path in dataset.rglob("*") if path.is_file()]
    assert [name for name in names if not any(re.fullmatch(pattern, name) for pattern in NAMES)] == []
    assert sum(name.endswith("_motion.tsv") for name in names) == 2
    told = json.loads((dataset / "dataset_description.json").read_text())
    assert told["Name"] == "friction"
    assert told["BIDSVersion"].startswith("1.10")
    participants = table(dataset / "participants.tsv")
    assert participants[0][0] == "participant_id"
    assert [row[0] for row in participants[1:]] == sorted(path.name for path in dataset.glob("sub-*"))
    assert set(json.loads((dataset / "participants.json").read_text())) == set(participants[0][1:])


def test_bids_trial_tables_are_described(dataset):
    for path in dataset.rglob("*_beh.tsv"):
        header, *rows = table(path)
        assert set(header) <= set(json.loads(path.with_suffix(".json").read_text()))
        assert len(rows) == 8
        for name in {row[header.index("recording")] for row in rows} - {"n/a"}:
            assert (path.parents[1] / name).is_file()


def test_bids_motion_channels_are_described(dataset):
    for seed, path in enumerate(sorted(dataset.rglob("*_motion.tsv")), 1):
        rows = rows_of(seed)
        header, *channels = table(path.with_name(path.name.replace("_motion.tsv", "_channels.tsv")))
        assert header == ["name", "component", "type", "tracked_point", "units"]
        by_name = {name: (component, kind, point, units) for name, component, kind, point, units in channels}
        assert len(by_name) == len(channels)
        for component, kind, _, units in by_name.values():
            assert component in ("x", "y", "n/a")
            assert UNITS.get(kind, units) == units
        values = table(path)
        assert len(values) == len(rows)
        assert len(values[0]) == len(channels)
        names = list(by_name)
        for axis, name in enumerate(("position_x", "position_y")):
            found = [float(row[names.index(name)]) for row in values]
            assert found == rows["position"][:, axis].tolist()
        assert by_name["force_x"] == ("x", "MISC", "handle", "N")
        assert [values[7][names.index(f"force_{axis}")] for axis in "xy"] == ["n/a", "n/a"]
        assert "hand_force_x" not in by_name  # unknown
        latency = [float(row[names.index("latency")]) for row in values]
        assert np.allclose(np.diff(latency), np.diff(rows["time"] + rows["period_error"]), atol=1e-12)
        told = json.loads(path.with_suffix(".json").read_text())
        kinds = [kind for _, kind, _, _ in by_name.values()]
        assert all(told[f"{kind}ChannelCount"] == kinds.count(kind) for kind in set(kinds))
        assert told["MotionChannelCount"] == len(channels)
        assert told["SamplingFrequency"] == 1000.0
        assert np.isclose(told["RecordingDuration"], rows["time"][-1] - rows["time"][0], atol=0.01)


def test_bids_scans_have_the_start_times(dataset):
    (path,) = dataset.rglob("*_scans.tsv")
    header, *rows = table(path)
    assert header == ["filename", "acq_time"]
    for name, instant in rows:
        assert (path.parent / name).is_file()
        assert re.fullmatch(r"2026-09-\d\dT\d\d:\d\d:\d\d\.123456Z", instant)


def test_bids_validator_finds_no_error(dataset):
    assert bids_errors(dataset) == []


def write_export(out, text="one"):
    with new_export(out) as folder:
        write_text(folder, "deep/table.csv", text)


def test_export_replaces_an_earlier_one(tmp_path):
    out = tmp_path / "some" / "out"
    write_export(out)
    with new_export(out) as folder:
        write_text(folder, "other.csv", "two")
    assert sorted(path.name for path in out.rglob("*")) == [EXPORT_MANIFEST, "other.csv"]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_export_into_an_empty_folder(tmp_path):
    write_export(tmp_path)
    assert (tmp_path / "deep" / "table.csv").read_text() == "one"


def test_failed_export_leaves_the_folder_unchanged(tmp_path):
    out = tmp_path / "out"
    write_export(out)
    with pytest.raises(ZeroDivisionError), new_export(out) as folder:
        write_text(folder, "half.csv", "")
        raise ZeroDivisionError
    assert (out / "deep" / "table.csv").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("harm", ["edited", "added", "manifest", "link", "linked folder"])
def test_modified_export_is_not_overwritten(tmp_path, harm):
    out = tmp_path / "out"
    write_export(out)
    table = out / "deep" / "table.csv"
    if harm == "edited":
        table.write_text("mine")
    elif harm == "added":
        (out / "notes.txt").write_text("mine")
    elif harm == "manifest":
        (out / EXPORT_MANIFEST).write_text("[]")
    elif harm == "link":
        table.rename(tmp_path / "elsewhere")
        table.symlink_to(tmp_path / "elsewhere")
    else:
        (out / "linked").symlink_to(tmp_path)
    before = sorted(out.rglob("*"))
    with pytest.raises(ConfigurationError, match="--out"):
        write_export(out, "two")
    assert sorted(out.rglob("*")) == before
    assert table.read_text() in ("one", "mine")


def test_foreign_folders_files_and_links_are_not_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "folders").mkdir()
    (tmp_path / "folders" / "inside").mkdir()
    for name in ("file", "folder", "link", "folders"):
        with pytest.raises(ConfigurationError, match="--out"):
            write_export(tmp_path / name)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "precious").read_text() == "mine"
    assert not any((tmp_path / "empty").iterdir())


def test_impossible_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_export(tmp_path / "file" / "out")


@pytest.fixture
def recorded(tmp_path):
    return simulate(changed(tmp_path), tmp_path / "out")[1]


def test_modified_ticks_are_not_packed(recorded):
    block = recorded.recording(1)
    rows = np.load(block / TICKS, mmap_mode="r+")
    rows["position"][7, 0] += 1e-9
    rows.flush()
    with pytest.raises(RecordingError, match="changed, or not closed"):
        pack(block)
    assert (block / TICKS).exists() and not (block / PACKED).exists()


@pytest.mark.parametrize("harm", ["cut", "other", "empty"])
def test_damaged_packed_file_is_refused(recorded, harm):
    block = recorded.recording(1)
    pack(block)
    file = block / PACKED
    data = file.read_bytes()
    file.write_bytes({"cut": data[: len(data) // 2], "other": b"PK\3\4" + data[100:], "empty": b""}[harm])
    with pytest.raises(RecordingError, match="holds no packed ticks"):
        unpack(block)
    assert file.exists() and not (block / TICKS).exists()
