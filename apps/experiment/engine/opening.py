"""Start and resumption of a session.

Its settings and files are on disk before the first trial.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from apps.experiment.design import Design, Source, design_of
from apps.experiment.engine.sequence import Participant
from apps.experiment.friction.session import copy_compensation
from apps.experiment.journal import Journal, SessionFolder, make_codes, replay, reserve_slot, seal_codes
from apps.experiment.journal.reading import parsed
from apps.session.record import made_by
from haptics.errors import ConfigurationError, RecordingError
from haptics.reading import read_small


@dataclass(frozen=True)
class Manner:
    """Options of the execution of a session.

    Attributes
    ----------
    live : bool
        Whether a simulated observer runs in real time.
    lsl : bool
        Whether the session is streamed by the Lab Streaming Layer.
    screens : bool
        Whether the screens are shown although a simulated observer answers: a rehearsal in real time.
    """

    live: bool = False
    lsl: bool = False
    screens: bool = False


@dataclass(frozen=True)
class Request:
    """Session request from the command line.

    Attributes
    ----------
    code : str
        Code of the participant.
    session : int
        Session number of the participant.
    seed : int
        Seed of the experiment.
    out : Path
        Folder of all sessions.
    fields : dict
        Data about the participant.
    simulated : bool
        Whether a simulated observer answers.
    manner : Manner
        Options of the execution.
    """

    code: str
    session: int
    seed: int
    out: Path
    fields: dict[str, str]
    simulated: bool
    manner: Manner = Manner()


def begin(design: Design, request: Request) -> tuple[Journal, Participant]:
    """Create the folder and the journal of a new session.

    Raises
    ------
    ConfigurationError
        If the session exists already, or required data about the participant are missing.
    JournalFault
        If the journal cannot be written.
    """
    fields = _fields(design, request)
    place = SessionFolder.new(request.out, request.code, request.session, design.experiment.name)
    if place.journal.exists():
        raise ConfigurationError(
            f"{place.folder} has a session of this experiment: go on with it by 'haptics experiment resume "
            f"{place.folder}', or choose another --participant, --session or --out."
        )
    slot = reserve_slot(request.out, design.experiment.name, request.code)
    seal = seal_codes(place, make_codes(_stimuli(design))) if design.experiment.blind else None
    made = made_by()
    header = {
        "experiment": design.experiment.name,
        "design_sha256": design.sha256,
        "design": design.tables,
        "seed": request.seed,
        "fields": fields,
        "observer": dict(design.tables.get("observer", {})) if request.simulated else None,
        "device": device_facts(design),
        "versions": {**made["versions"], "program_sha256": made["program_sha256"]},
        "blind": seal,
        "slot": slot,
    }
    sidecar = {"design_file": str(design.path), "design_text": design.text, "configuration": design.session.as_dict()}
    journal = Journal.create(place, header, sidecar)
    try:
        copy_compensation(design, place)
    except BaseException:
        journal.close()
        raise
    return journal, Participant(request.code, request.session, slot, request.seed)


def _stimuli(design: Design) -> list[dict[str, Any]]:
    return [
        {"condition": one.name, "track": f"{one.name}/{k + 1}"} for one in design.conditions for k in range(one.tracks)
    ]


def _fields(design: Design, request: Request) -> dict[str, str]:
    """Validate and return the data about the participant."""
    for name, value in request.fields.items():
        allowed = design.fields.allowed.get(name)
        if allowed is not None and value not in allowed:
            raise ConfigurationError(f"--field {name}={value}: must be one of {', '.join(map(str, allowed))}.")
    missing = [name for name in design.fields.demanded if name not in request.fields]
    if missing and not request.simulated:
        raise ConfigurationError(
            f"{', '.join(missing)}: must be known of a participant (table [fields] of {design.path}); say --field "
            f"{missing[0]}=VALUE."
        )
    return request.fields


def device_facts(design: Design) -> dict[str, Any]:
    """Return the device, its data sheet, and the hashes of its calibration files."""
    config = design.session
    return {
        "name": config.device,
        "data_sheet": {name: _plain(value) for name, value in asdict(config.spec).items()},
        "parameter_file_hash": config.parameter_file_hash,
        "friction_file_hash": config.friction_file_hash,
        **({"measured_file_hash": config.measured_file_hash} if config.measured_file_hash else {}),
    }


def _plain(value: Any) -> Any:
    """Return a value for JSON: lists for sequences, and null for infinity."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if value == math.inf else value


def take_up(folder: Path) -> tuple[Design, Journal, Participant]:
    """Open an interrupted session.

    Raises
    ------
    ConfigurationError
        If the session has ended, is too old, or may not be resumed according to its design.
    RecordingError
        If its files are inconsistent.
    """
    place = SessionFolder.of(folder)
    journal = Journal.open(place)
    try:
        design = _same_design(place, journal)
        _require_open(design, journal)
    except BaseException:
        journal.close()
        raise
    header = journal.records[0]
    slot = header["slot"] or 0
    return design, journal, Participant(place.participant, place.session, slot, header["seed"])


def _same_design(place: SessionFolder, journal: Journal) -> Design:
    try:
        sidecar = parsed(read_small(place.sidecar))
        text, file = str(sidecar["design_text"]), str(sidecar["design_file"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordingError(f"{place.sidecar} does not hold the experiment as it was begun ({error}).") from error
    design, header = design_of(Source(Path(file), text)), journal.records[0]
    if design.sha256 != header["design_sha256"]:
        raise RecordingError(f"{place.sidecar}: its experiment is not the one of the journal; it was changed.")
    _require_same_files(header["device"], device_facts(design))
    begun = sidecar.get("configuration", {}).get("scene")
    if begun != design.session.as_dict().get("scene"):
        raise ConfigurationError(
            f"{place.sidecar}: the scene of the session is not the one that it began with: put back its file, or begin "
            "another session."
        )
    return design


def _require_same_files(told: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise unless the device has the same parameter files as before.

    Entries missing in old journals are accepted.
    """
    for name in ("name", "parameter_file_hash", "friction_file_hash", "measured_file_hash"):
        if name in told and told[name] != now.get(name):
            raise ConfigurationError(
                f"{name} of the device was {told[name]} when the session began, and is {now.get(name)} now: put back "
                "the calibration that it began with, or begin another session."
            )


def _require_open(design: Design, journal: Journal) -> None:
    state, place = replay(journal.records), journal.place
    if state.end is not None:
        raise ConfigurationError(f"{place.folder} has ended ({state.end['reason']}): there is nothing to resume.")
    if design.resume.policy == "restart":
        raise ConfigurationError(
            f"resume.policy = 'restart': {place.folder} is not to be taken up again; begin another session (--session)."
        )
    if state.age() > timedelta(seconds=design.resume.most_age):
        hours = state.age() / timedelta(hours=1)
        raise ConfigurationError(
            f"{place.folder} was interrupted {hours:.1f} h ago, and resume.most_age = {design.resume.most_age:g} s: "
            "begin another session (--session)."
        )


def with_seed(design: Design, seed: int | None) -> int:
    """Return the seed from the command line, or else from the experiment file."""
    return design.experiment.seed if seed is None else dataclasses.replace(design.experiment, seed=seed).seed
