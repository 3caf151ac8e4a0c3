"""Exports of sessions: wide CSV with a script for R, three columns for psignifit, Psych-DS."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from apps.experiment.export.forms import FORM_COLUMNS, codebook, form_rows
from apps.experiment.journal.exclusion import TRAINING, LeftOut, require_any, select_included
from apps.experiment.journal.folder import EXPORT_MANIFEST, sessions_below
from apps.experiment.journal.journal import read_journal, replay, require_same
from apps.experiment.journal.tables import Row, Session, columns_of, csv_of, csv_text, text_of, trial_rows
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small
from haptics.recording.tick_file import digest_of

SIMULATED = (
    "The answers are those of a simulated observer: they verify method and analysis, and never stand for people."
)

_TYPES = {"text": "string", "number": "number", "whole": "integer", "flag": "boolean"}

Counts = dict[float, tuple[int, int]]
"""Numbers of right answers and of all answers by level."""


def read_sessions(folders: Iterable[Path]) -> list[Session]:
    """Return the unique sessions in `folders`, sorted by participant and number.

    Sessions of excluded participants and training are left out.

    Raises
    ------
    ConfigurationError
        If two sessions have the same participant, number and task, a blind session has not ended, or all sessions are
        left out.
    RecordingError
        If there is no session, or a journal cannot be read.
    """
    return select_sessions(folders)[0]


def select_sessions(folders: Iterable[Path]) -> tuple[list[Session], list[LeftOut]]:
    """Return the sessions like `read_sessions`, and those that are left out."""
    found: dict[str, Session] = {}
    places = {one.folder.resolve(): one for folder in folders for one in sessions_below(folder)}
    included, left_out = select_included(places.values())
    for place in included:
        if place.stem in found:
            raise ConfigurationError(f"{place.folder} and {found[place.stem].place.folder} are both {place.stem}.")
        contents = read_journal(place.journal)
        require_same(place, contents)
        state = replay(contents.records)
        if state.training:
            left_out.append(LeftOut(place.participant, place.session, TRAINING))
            continue
        if state.sealed:
            raise ConfigurationError(
                f"{place.folder} is blind and has not ended: its levels stay sealed until then. Leave it out, or end "
                f"it: haptics experiment resume {place.folder}"
            )
        found[place.stem] = Session(place, state, trial_rows(place))
    require_any(found, left_out)
    return [found[stem] for stem in sorted(found)], left_out


def note_left_out(folder: Path, left_out: Sequence[LeftOut]) -> None:
    """List the sessions that an export leaves out in its README page, or in ``left_out.csv`` if it has none."""
    if (folder / "README.md").exists():
        lines = [f"- {one.participant}, session {one.session}: {one.reason}" for one in left_out]
        add_to_readme(folder, ["Not included:", "", *lines])
        return
    rows: list[list[Any]] = [["participant", "session", "reason"]]
    rows += [[one.participant, one.session, one.reason] for one in left_out]
    write_text(folder, "left_out.csv", csv_text(rows))


def add_to_readme(folder: Path, lines: Sequence[str]) -> None:
    """Append lines to the README page of an export."""
    with open(folder / "README.md", "a", encoding="utf-8", newline="") as file:
        file.write("\n".join([*lines, ""]))


# --- description of an export ---


def about(sessions: Sequence[Session]) -> tuple[str, str]:
    """Return the names of the experiments, and the summary of the exported sessions in one paragraph."""
    name = ", ".join(sorted({session.header["experiment"] for session in sessions}))
    people = len({session.place.participant for session in sessions})
    simulated = sum(session.header["observer"] is not None for session in sessions)
    words = f"Psychophysical experiment {name}: {len(sessions)} sessions of {people} participants."
    if simulated == len(sessions):
        words += f" {SIMULATED}"
    elif simulated:
        words += (
            f" {simulated} of the sessions have a simulated observer (column observer), which never stands for people."
        )
    return name, words


def readme(sessions: Sequence[Session]) -> str:
    """Return the README page of an export."""
    name, words = about(sessions)
    versions = sorted({str(session.header["versions"].get("haptics", "?")) for session in sessions})
    designs = sorted({session.header["design_sha256"] for session in sessions})
    lines = [
        f"# {name}",
        "",
        words,
        "",
        f"Made from the journals of the sessions by haptics (sessions run with version {', '.join(versions)}).",
        f"SHA-256 of the experiment file: {', '.join(designs)}.",
        "",
        "Columns `asked_*` are what the procedure chose, `delivered_*` what the commands rendered, `felt_*` what",
        "reached the hand. A trial that was repeated has several rows; `counts` marks the one to analyse.",
        "",
    ]
    return "\n".join(lines)


# --- formats ---


def export_csv(folder: Path, sessions: Sequence[Session]) -> None:
    """Write ``trials.csv``, ``participants.csv``, a description of the columns, and ``read.R``.

    The tables are for JASP, jamovi, pandas and R. ``participants.csv`` has a row for each session: participant, design,
    device, time, end, and data about the participant. If there are forms, their answers and scores are in
    ``forms.csv`` and described in ``forms_codebook.csv``.
    """
    names = sorted({name for session in sessions for name in session.header["fields"]})
    plain = ["participant", "session", "experiment", "seed", "slot", "design_sha256", "blind"]
    own = ["observer", "device", "begun_utc", "end_reason", "trials", "repeated"]
    own += ["group"] if any(session.state.group is not None for session in sessions) else []
    rows: list[list[Any]] = [[*plain, *own, *(f"field_{name}" for name in names)]]
    for session in sessions:
        state, header = session.state, session.header
        cells = [
            None if header["observer"] is None else header["observer"].get("name", "simulated"),
            header["device"].get("name"),
            header["utc"],
            None if state.end is None else state.end["reason"],
            state.test_trials,
            state.repeated,
            *([state.group] if "group" in own else []),
        ]
        rows.append(
            [*(header[name] for name in plain), *cells, *(session.header["fields"].get(name) for name in names)]
        )
    used = columns_of(session.state for session in sessions)
    columns = [["name", "kind", "unit", "description"], *([one.name, one.kind, one.unit, one.doc] for one in used)]
    script = resources.files("apps.experiment.export") / "read.R"
    write_text(folder, "trials.csv", csv_of((row for session in sessions for row in session.rows), used))
    write_text(folder, "participants.csv", csv_text(rows))
    write_text(folder, "columns.csv", csv_text(columns))
    write_text(folder, "read.R", script.read_text(encoding="utf-8"))
    answers = [row for session in sessions for row in form_rows(session)]
    if answers:
        write_text(folder, "forms.csv", csv_of(answers, FORM_COLUMNS))
        write_text(folder, "forms_codebook.csv", csv_text(codebook(sessions)))
        script = resources.files("apps.experiment.export") / "read_forms.R"
        write_text(folder, "read_forms.R", script.read_text(encoding="utf-8"))


def export_psignifit(folder: Path, sessions: Sequence[Session]) -> None:
    """Write a table for every condition of every session: level, number correct, number of trials.

    Only test trials that count are included, without practice, catch and repeated trials.

    Raises
    ------
    ConfigurationError
        If no answer can be right or wrong, as in an adjustment.
    """
    written = 0
    for session in sessions:
        labels: set[str] = set()
        for condition, counts in counts_of(session.rows).items():
            plain = re.sub(r"[^A-Za-z0-9]", "", condition) or "unnamed"
            label, number = plain, 2
            while label.lower() in labels:
                label, number = f"{plain}{number}", number + 1
            labels.add(label.lower())
            lines = ["level,n_correct,n_total", *(f"{text_of(level)},{n},{of}" for level, (n, of) in counts.items())]
            write_text(folder, f"{session.place.stem}_condition-{label}_psignifit.csv", "\r\n".join([*lines, ""]))
            written += 1
    if not written:
        raise ConfigurationError("--to psignifit: no trial of the test has an answer that is right or wrong.")


def counts_of(rows: Sequence[Row]) -> dict[str, Counts]:
    """Return the numbers of right answers and of trials by condition and level, in order of levels."""
    found: dict[str, dict[float, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["counts"] and row["kind"] == "test" and row["correct"] is not None and row["level"] is not None:
            found[row["condition"]][float(row["level"])].append(row["correct"])
    return {
        condition: {level: (sum(answers), len(answers)) for level, answers in sorted(levels.items())}
        for condition, levels in found.items()
    }


def export_psych_ds(folder: Path, sessions: Sequence[Session]) -> None:
    """Write the Psych-DS data set: one CSV for each session, and a description of every column."""
    variables, columns = [], columns_of(session.state for session in sessions)
    forms = {session.place.stem: rows for session in sessions if (rows := form_rows(session))}
    known = {column.name for column in columns}
    described = (*columns, *(one for one in FORM_COLUMNS if forms and one.name not in known))
    for column in described:  # PropertyValue of schema.org
        variable: dict[str, Any] = {"@type": "PropertyValue", "name": column.name, "description": column.doc}
        variable["valueType"] = _TYPES[column.kind]
        if column.unit:
            variable["unitText"] = column.unit
        if column.levels:
            variable["valueReference"] = [f"{level}: {meaning}" for level, meaning in column.levels.items()]
        variables.append(variable)
    name, words = about(sessions)
    data_set = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "name": name,
        "description": words,
        "schemaVersion": "Psych-DS 1.5.0",
        "keywords": ["psychophysics", "haptics", "friction"],
        "variableMeasured": variables,
    }
    write_json(folder, "dataset_description.json", data_set)
    write_text(folder, "README.md", readme(sessions))
    for session in sessions:
        place = session.place
        file = f"study-{place.task}_participant-{place.participant}_session-{place.session:02d}_data.csv"
        write_text(folder, f"data/{file}", csv_of(session.rows, columns))
        if place.stem in forms:
            name = file.removesuffix("_data.csv") + "_content-forms_data.csv"
            write_text(folder, f"data/{name}", csv_of(forms[place.stem], FORM_COLUMNS))


# --- folder of an export ----------------------------------------------------------------------------------------------

_UNBORN = ".haptics-export-"


@contextlib.contextmanager
def new_export(out: Path) -> Iterator[Path]:
    """Yield a new folder that replaces `out` at the end, unless an exception is raised.

    `out` must not exist, be an empty folder, or be an export without later changes.

    Raises
    ------
    ConfigurationError
        If `out` is anything else or cannot be written.
    """
    _require_ours(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_UNBORN, dir=out.parent) as hidden:
            unborn = Path(hidden) / "new"
            unborn.mkdir()
            yield unborn
            files = {name: digest_of(unborn / name) for name in sorted(_names(unborn))}
            manifest = json.dumps({"haptics": "export", "files": files}, indent=2) + "\n"
            (unborn / EXPORT_MANIFEST).write_text(manifest, encoding="utf-8")
            _require_ours(out)  # writing may have taken minutes
            if os.path.lexists(out):
                os.rename(out, Path(hidden) / "old")
            os.rename(unborn, out)
    except OSError as error:
        raise ConfigurationError(f"--out {out}: cannot be written ({error.strerror or error}).") from error


def _names(folder: Path) -> Iterator[str]:
    """Yield the relative paths of all files and links below a folder.

    Links are not followed.
    """
    for where, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(where, name))]
        for name in (*files, *links):
            yield (Path(where) / name).relative_to(folder).as_posix()


def _require_ours(out: Path) -> None:
    if not os.path.lexists(out):
        return
    if os.path.islink(out) or not out.is_dir():
        raise ConfigurationError(f"--out {out}: is there and is no folder; name a new one.")
    names = sorted(_names(out))
    if not names and not any(out.iterdir()):
        return
    try:
        files = dict(json.loads(read_small(out / EXPORT_MANIFEST))["files"])
    except (ValueError, LookupError, TypeError, RecursionError, HapticError) as error:
        raise ConfigurationError(f"--out {out}: holds files that are not of an export; name a new folder.") from error
    for name in names:
        path = out / name
        if name != EXPORT_MANIFEST and (name not in files or path.is_symlink() or digest_of(path) != files[name]):
            raise ConfigurationError(
                f"--out {out}: {name} was changed or added since the export; nothing was replaced. Move it away, "
                "or name a new folder."
            )


def write_text(folder: Path, name: str, text: str) -> None:
    """Write a file of an export and create its folders.

    Line ends are not converted.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="") as file:
        file.write(text)


def write_json(folder: Path, name: str, value: object) -> None:
    """Write a JSON file of an export."""
    write_text(folder, name, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
