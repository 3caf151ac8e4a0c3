"""Archive of an experiment for a repository: a BIDS data set with licence, codebook and the experiment's file."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.experiment.export.bids import export_bids
from apps.experiment.export.formats import add_to_readme, new_export, select_sessions, write_text
from apps.experiment.export.forms import codebook, completed, consent_of, forms_of
from apps.experiment.forms.forms import FORM_COMPLETED
from apps.experiment.journal.journal import parsed
from apps.experiment.journal.tables import Session, columns_of, csv_text
from haptics.errors import ConfigurationError, HapticError
from haptics.files import read_small

LICENSES = {
    "CC0-1.0": ("CC0 1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/legalcode"),
    "CC-BY-4.0": (
        "Creative Commons Attribution 4.0 International",
        "https://creativecommons.org/licenses/by/4.0/legalcode",
    ),
    "CC-BY-SA-4.0": (
        "Creative Commons Attribution-ShareAlike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/legalcode",
    ),
    "ODC-By-1.0": ("Open Data Commons Attribution License 1.0", "https://opendatacommons.org/licenses/by/1-0/"),
    "PDDL-1.0": (
        "Open Data Commons Public Domain Dedication and License 1.0",
        "https://opendatacommons.org/licenses/pddl/1-0/",
    ),
}
"""Name and address of each licence, by its SPDX identifier."""

WITHHELD = "withheld"
"""Replacement of an answer in free text."""

_IDENTIFYING = ("consent_id",)
"""Data about a participant that are not published."""

_EXTRA = "codebook.csv\ncodebook_forms.csv\n"


def archive(
    folders: Sequence[Path], out: Path, *, licence: str, authors: Sequence[str], with_text: bool = False
) -> dict[str, Any]:
    """Write the archive of the sessions in `folders`.

    Parameters
    ----------
    folders : sequence of Path
        Folders of sessions, or folders that contain them.
    out : Path
        New folder or an earlier archive without later changes; with the suffix ``.zip``, a new file.
    licence : str
        One of `LICENSES`.
    authors : sequence of str
        Authors of the data set.
    with_text : bool
        Whether answers in free text are included.

    Returns
    -------
    dict
        Numbers of sessions that were written, of those left out because sharing was not agreed to, and of training and
        sessions of excluded participants (``excluded``).

    Raises
    ------
    ConfigurationError
        If no session may be published, or `out` cannot be written.
    RecordingError
        If there is no session, or a journal is damaged.
    """
    if not authors or not all(one.strip() for one in authors):
        raise ConfigurationError("--author is missing: the authors of the data set.")
    found, left_out = select_sessions(folders)
    shared = [session for session in found if _may_be_shared(session)]
    if not shared:
        raise ConfigurationError("no participant has agreed to the publication of the data (consent.sharing).")
    sessions = [_redacted(session, with_text) for session in shared]
    name, address = LICENSES[licence]
    with _new_archive(out) as folder:
        export_bids(folder, sessions, {"License": licence, "Authors": list(authors)})
        if left_out:
            words = f"Sessions of excluded participants and training that are not included: {len(left_out)}."
            add_to_readme(folder, [words])
        write_text(folder, "LICENSE", f"These data are published under the licence {name} ({licence}):\n{address}\n")
        known = columns_of(session.state for session in sessions)
        columns = [[one.name, one.kind, one.unit, one.doc] for one in known]
        write_text(folder, "codebook.csv", csv_text([["name", "kind", "unit", "description"], *columns]))
        forms = codebook(sessions)
        if len(forms) > 1:
            write_text(folder, "codebook_forms.csv", csv_text(forms))
        write_text(folder, ".bidsignore", _EXTRA)
        for file, text in sorted(_design_files(sessions).items()):
            write_text(folder, f"code/{file}", text)
    counts = {"sessions": len(shared), "left_out": len(found) - len(shared), "excluded": len(left_out)}
    return {**counts, "license": licence, "out": str(out)}


def _may_be_shared(session: Session) -> bool:
    """Return True if there was no consent page, or the participant has agreed to it and to the publication."""
    consent = consent_of(session)
    if consent is None:
        page = session.header["design"].get("consent")
        return not (isinstance(page, dict) and page.get("version"))
    return consent.get("agreed") is True and consent.get("sharing", True) is True


def _redacted(session: Session, with_text: bool) -> Session:
    """Return the session without identifying fields, and without free text unless `with_text`."""
    header = dict(session.header)
    header["fields"] = {name: value for name, value in header["fields"].items() if name not in _IDENTIFYING}
    events = [event for event in session.state.events if event["name"] != FORM_COMPLETED]
    forms = forms_of(session)
    for event in completed(session):
        form = forms.get(event["form"])
        kinds = {item.name: item.kind for item in form.asked} if form is not None else {}
        answers = {
            # without the item's kind, any text may be free text
            name: WITHHELD if isinstance(value, str) and not with_text and kinds.get(name) != "choice" else value
            for name, value in event["answers"].items()
        }
        events.append({**event, "answers": answers})
    state = dataclasses.replace(session.state, header=header, events=events)
    return Session(session.place, state, session.rows)


def _design_files(sessions: Sequence[Session]) -> dict[str, str]:
    """Return the text of each experiment file and each CSV file of conditions, named after the start of its SHA-256."""
    found: dict[str, str] = {}
    for session in sessions:
        with contextlib.suppress(HapticError, ValueError, LookupError, TypeError, RecursionError):
            sidecar = parsed(read_small(session.place.sidecar))
            for name, entry in (("experiment-{}.toml", "design_text"), ("conditions-{}.csv", "conditions_text")):
                if entry in sidecar:
                    text = str(sidecar[entry])
                    found[name.format(hashlib.sha256(text.encode()).hexdigest()[:12])] = text
    return found


@contextlib.contextmanager
def _new_archive(out: Path) -> Iterator[Path]:
    """Yield a folder that becomes the archive: a folder, or a file with the suffix ``.zip``."""
    if out.suffix != ".zip":
        with new_export(out) as folder:
            yield folder
        return
    if os.path.lexists(out):
        raise ConfigurationError(f"--out {out}: is there already; name a new file.")
    try:
        with tempfile.TemporaryDirectory(prefix=".haptics-archive-", dir=out.parent) as hidden:
            folder, whole = Path(hidden) / out.stem, Path(hidden) / "archive.zip"
            folder.mkdir()
            yield folder
            with zipfile.ZipFile(whole, "x", zipfile.ZIP_DEFLATED) as file:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        file.write(path, path.relative_to(folder.parent))
            os.link(whole, out)  # fails if the file has been created in the meantime
    except OSError as error:
        raise ConfigurationError(f"--out {out}: cannot be written ({error.strerror or error}).") from error
