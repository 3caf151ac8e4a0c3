"""Start, resumption and execution of sessions, one or many at once.

The settings and files of a session are on disk before the first trial.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from apps.experiment.assignment import AssignmentLog
from apps.experiment.design import Design, design_of, read_design
from apps.experiment.journal.blinding import make_codes, seal_codes
from apps.experiment.journal.exclusion import ExclusionLog
from apps.experiment.journal.folder import SessionFolder, has_slot, reserve_slot, transfer_slot
from apps.experiment.journal.journal import Journal, parsed, replay
from apps.experiment.journal.schema import CARRIED, GROUP
from apps.experiment.journal.tables import write_table
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import child, person_seed, trial_seed
from apps.experiment.schedule import (
    SCHEDULED,
    carried_thresholds,
    day_of,
    earlier_thresholds,
    first_due_day,
    require_due,
    sessions_of,
    today_in,
    window_of,
)
from apps.experiment.screens.display import Display
from apps.experiment.sequence import Participant, TrialSequence
from apps.experiment.session.live import require_display, run_with_screens
from apps.experiment.session.presentation import Respondent, Simulated
from apps.experiment.session.session import ENDED_BY_A_PERSON, ExperimentSession
from apps.experiment.session.stages import Followers, LiveStage, OfflineStage
from apps.experiment.source import Source
from apps.experiment.triggers.ports import DEVICE, NONE, open_port
from apps.experiment.triggers.session import Triggers
from apps.front_ends.front_end import FrontEnd
from apps.session.record import made_by
from apps.shared.terminal import print_status
from apps.shared.workers import workers
from apps.stream import require_lsl
from devices import is_virtual
from haptics.errors import ConfigurationError, RecordingError
from haptics.files import read_small, write_atomically

_FIELDS = 500
"""Purpose of the random fields of simulated participants."""


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
    date : date or None
        Simulated day of a simulated observer's session; None for the first day on which the session is due.
    outside : str
        Reason for a session outside the window of the schedule.
    replaces : str
        Code of an excluded participant whose place and group a new one takes.
    """

    code: str
    session: int
    seed: int
    out: Path
    fields: dict[str, str]
    simulated: bool
    manner: Manner = Manner()
    date: date | None = None
    outside: str = ""
    replaces: str = ""


def run_session(design: Design, request: Request) -> dict[str, Any]:
    """Run a new session.

    Return the result for the command line.
    """
    _require_possible(design, request.simulated, request.manner)
    journal, who = begin(design, request)
    with journal:
        design, who = in_group(design, journal, who, request.out)
        who = carry_over(design, journal, who, request.out)
        return _run(design, journal, who, request.manner)


def resume_session(folder: Path, manner: Manner | None = None, outside: str = "") -> dict[str, Any]:
    """Continue an interrupted session. `outside` is the reason to do so outside the window of the schedule."""
    design, journal, who = reopen(folder)
    manner = manner or Manner()
    with journal:
        simulated, out = journal.records[0]["observer"] is not None, journal.place.folder.resolve().parents[1]
        ExclusionLog(out).require_included(who.code)
        _require_possible(design, simulated, manner)
        scheduled = None
        if design.schedule.sessions and not simulated:
            today = today_in(design.schedule.zone)
            scheduled = require_due(design.schedule, journal.place, out, design.experiment.name, today, outside)
        journal.append("event", name="resumed", torn_bytes=journal.torn)
        if scheduled is not None:
            journal.append("event", name=SCHEDULED, **scheduled)
        design, who = in_group(design, journal, who, out)
        who = carry_over(design, journal, who, out)
        return _run(design, journal, who, manner)


def run_sessions(file: Path, requests: Sequence[Request], count: int) -> list[dict[str, Any]]:
    """Run sessions of simulated participants in parallel, with the arrival order of `requests`."""
    design = read_design(file)
    for request in requests:
        place = SessionFolder.new(request.out, request.code, request.session, design.experiment.name)
        _scheduled(design, request, place)
        ExclusionLog(request.out).require_included(request.code)
    logs: dict[Path, AssignmentLog] = {}
    for request in requests:
        reserve_slot(request.out, design.experiment.name, request.code)
        if design.groups.names:
            log = logs.setdefault(request.out, AssignmentLog(request.out, design.experiment.name))
            log.assign(request.code, design.groups, _with_group_fields(design, request), request.seed)
    count = min(count or os.cpu_count() or 1, len(requests))
    if count == 1:
        return [run_session(design, request) for request in requests]
    with workers("processes", count) as (pool, _):
        return list(pool.map(run_in_worker, [file] * len(requests), requests))


def run_in_worker(file: Path, request: Request) -> dict[str, Any]:
    """Run a session of an experiment file in a worker process."""
    return run_session(read_design(file), request)


def _require_possible(design: Design, simulated: bool, manner: Manner) -> None:
    """Raise if the hand, screen or stream is not available.

    Called before anything is written.
    """
    if not simulated or manner.screens:
        require_display()
    if simulated and design.session.hand == "mouse":
        raise ConfigurationError(
            "hand.name = 'mouse': a simulated observer moves no mouse; take another hand, such as minimum-jerk."
        )
    if manner.lsl and not _is_live(design, simulated, manner):
        raise ConfigurationError("--lsl: a session without a clock is not streamed; leave it out, or use --clock wall.")
    if manner.lsl:
        require_lsl()
    if design.triggers.port != NONE and _is_live(design, simulated, manner):
        if design.triggers.port != DEVICE:
            open_port(design.triggers).close()
        elif not getattr(design.session.made[0], "digital_output", False):
            raise ConfigurationError(
                f"triggers.port = {DEVICE!r}: the driver {design.session.device} has no digital output for codes with "
                "these settings; a Force Dimension delta.3 or sigma.7 has one. Choose another port."
            )


def _is_live(design: Design, simulated: bool, manner: Manner) -> bool:
    """Return True if the session runs in real time, as with a participant or a physical device."""
    return manner.live or manner.screens or not simulated or not is_virtual(design.session.device)


def _run(design: Design, journal: Journal, who: Participant, manner: Manner) -> dict[str, Any]:
    """Run the session of an open journal, and return the result for the command line."""
    begun = time.monotonic()
    simulated = journal.records[0]["observer"] is not None

    def observer(sequence: TrialSequence) -> Respondent:
        table = design.tables.get("observer", {})
        person = make_observer(table, seed=person_seed(who.seed, who.code))
        return Simulated(person, sequence, time_out=design.trials.time_out)

    with ExitStack() as stack:
        streams: tuple[FrontEnd, ...] = ()
        if manner.lsl:
            from apps.experiment.export.lsl import start_outlet

            config = design.session
            outlet = start_outlet(journal.place.journal, str(config.spec.causality), config.session.rate)
            stack.callback(outlet.close)
            streams = (outlet,)
        triggers = None
        if design.triggers.port != NONE and _is_live(design, simulated, manner):
            triggers = Triggers(design.triggers, journal, fifo=design.session.servo.scheduling != "other")
            stack.callback(triggers.close)
            streams = (*streams, triggers.front)
            design = dataclasses.replace(design, session=triggers.connect(design.session))
        if not simulated or manner.screens:
            session, reason = run_with_screens(design, journal, who, streams, observer if simulated else None, triggers)
        else:
            live = _is_live(design, simulated, manner)
            session = ExperimentSession(
                design,
                who,
                journal,
                respondent=observer,
                stage=functools.partial(LiveStage, follow=Followers(*streams)) if live else OfflineStage,
                display=Display(design),
                again=not live,
                triggers=triggers,
            )
            reason = session.run()
    elapsed = time.monotonic() - begun
    try:
        table = str(write_table(journal.place))
    except OSError as error:
        table = None
        print_status(
            f"{journal.place.table} could not be written ({error}); nothing is lost, every export makes it anew."
        )
    hidden = design.experiment.blind or design.groups.blind
    following, schedule = who.session + 1, design.schedule
    window = None
    if following <= schedule.sessions:
        window = window_of(schedule, following, day_of(session.state, schedule.zone))
    return {
        "folder": str(journal.place.folder),
        "participant": who.code,
        **({"group": design.group} if design.group and not hidden else {}),
        "session": who.session,
        **({} if window is None else {"next_session": {"session": following, "due": str(window)}}),
        "trials": session.state.test_trials,
        "repeated": session.state.repeated,
        "journal": str(journal.place.journal),
        "reason": reason,
        "blocks": len(session.state.blocks),
        "tracks": {} if design.experiment.blind else session.sequence.reports(),
        "simulated": simulated,
        "elapsed_s": round(elapsed, 3),
        "table": table,
    }


# --- start and resumption ---


def begin(design: Design, request: Request) -> tuple[Journal, Participant]:
    """Create the folder and the journal of a new session.

    Raises
    ------
    ConfigurationError
        If the session exists already, or required data about the participant are missing.
    JournalFault
        If the journal cannot be written.
    """
    for name, value in request.fields.items():
        allowed = design.fields.allowed.get(name)
        if allowed is not None and value not in allowed:
            raise ConfigurationError(f"--field {name}={value}: must be one of {', '.join(map(str, allowed))}.")
    missing = [name for name in design.fields.demanded if name not in request.fields]
    if missing and not request.simulated:
        raise ConfigurationError(
            f"{', '.join(missing)}: required for a participant (table [fields] of {design.path}); add --field "
            f"{missing[0]}=VALUE."
        )
    place = SessionFolder.new(request.out, request.code, request.session, design.experiment.name)
    exclusions = ExclusionLog(request.out)
    exclusions.require_included(request.code)
    if place.journal.exists():
        raise ConfigurationError(
            f"{place.folder} has a session of this experiment: continue it with 'haptics experiment resume "
            f"{place.folder}', or choose another --participant, --session or --out."
        )
    scheduled = _scheduled(design, request, place)
    fields = _take_place(design, request, exclusions)
    slot, codes = reserve_slot(request.out, design.experiment.name, request.code), None
    if design.experiment.blind:
        tracks = [(one.name, f"{one.name}/{k + 1}") for one in design.conditions for k in range(one.tracks)]
        codes = make_codes({"condition": name, "track": track} for name, track in tracks)
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
        "blind": None if codes is None else codes.seal,
        "slot": slot,
    }
    file = design.path.absolute()  # its folder has the texts, also if the session is resumed from another folder
    sidecar = {"design_file": str(file), "design_text": design.text, "configuration": design.session.as_dict()}
    if design.csv_text:
        sidecar["conditions_text"] = design.csv_text

    def write_codes() -> None:
        if codes is not None:
            seal_codes(place, codes)

    try:
        journal = Journal.create(place, header, sidecar, write_codes)
    except ConfigurationError:
        raise
    except ValueError as error:  # such as a zero byte in a text of the file
        raise ConfigurationError(f"{design.path}: cannot be written to the journal: {error}.") from error
    try:
        if scheduled is not None:
            journal.append("event", name=SCHEDULED, **scheduled)
        compensated = design.session.device_settings.get("friction_parameters")
        if compensated and not design.friction.measure_each_session:
            write_atomically(place.friction, read_small(compensated).decode("utf-8"))
    except BaseException:
        journal.close()
        raise
    return journal, Participant(request.code, request.session, slot, request.seed)


def _scheduled(design: Design, request: Request, place: SessionFolder) -> dict[str, Any] | None:
    """Return the day of a new session for the journal, None without a schedule.

    A simulated participant comes on the first day on which the session is due.

    Raises
    ------
    ConfigurationError
        If the session is outside its window.
    """
    schedule, name = design.schedule, design.experiment.name
    if not schedule.sessions:
        return None
    today = request.date
    if today is None and request.simulated:
        today = first_due_day(schedule, request.out, request.code, name, request.session)
    today = today or today_in(schedule.zone)
    return require_due(schedule, place, request.out, name, today, request.outside)


def _take_place(design: Design, request: Request, exclusions: ExclusionLog) -> dict[str, str]:
    """Let a replacement take slot and group of the excluded participant, and return the data about the participant.

    The log is written first, so that a replacement that was interrupted is completed when the session is begun again.

    Raises
    ------
    ConfigurationError
        If the participant has begun, or differs in a field that the groups consider.
    """
    name, out, code = design.experiment.name, request.out, request.code
    recorded = exclusions.replaced_by(code, name)
    replaced = request.replaces or recorded
    if not replaced:
        return _with_group_fields(design, request)
    fields, assignments = dict(request.fields), AssignmentLog(out, name)
    assignment = assignments.of(replaced) or assignments.of(code)
    needed = {} if assignment is None else {field: assignment.fields.get(field, "") for field in design.groups.fields}
    for field, value in needed.items():
        if request.simulated:
            fields.setdefault(field, value)
        if fields[field] != value:
            raise ConfigurationError(
                f"--field {field}={fields[field]}: a participant who replaces {replaced} must have {field}={value}, "
                "as the groups are balanced over it."
            )
    if recorded != replaced:  # otherwise recorded earlier
        if sessions_of(out, code, name) or has_slot(out, name, code) or assignments.of(code) is not None:
            raise ConfigurationError(f"--replaces {replaced}: {code} has begun already; a replacement must be new.")
        exclusions.replace(code, replaced, name)
    transfer_slot(out, name, replaced, code)
    assignments.transfer(replaced, code)
    return _with_group_fields(design, dataclasses.replace(request, fields=fields))


def _with_group_fields(design: Design, request: Request) -> dict[str, str]:
    """Return the data about the participant; a simulated one gets random values of the fields that groups consider."""
    fields = dict(request.fields)
    for number, name in enumerate(design.groups.fields):
        if request.simulated and name not in fields:
            allowed, seed = design.fields.allowed[name], trial_seed(request.seed, request.code, 0, 0, 0)
            fields[name] = str(allowed[int(child(seed, _FIELDS + number).integers(len(allowed)))])
    return fields


def in_group(design: Design, journal: Journal, who: Participant, out: Path) -> tuple[Design, Participant]:
    """Return design and participant for the participant's group, which is recorded in the journal.

    The orders of conditions are balanced within a group: the place in the group replaces the slot.

    Raises
    ------
    ConfigurationError
        If the recorded group is not in the design.
    JournalFault
        If the assignment cannot be written.
    """
    if not design.groups.names:
        return design, who
    event = next((one for one in journal.records if one["record"] == "event" and one["name"] == GROUP), None)
    if event is None:
        header = journal.records[0]
        log = AssignmentLog(out, design.experiment.name)
        found = log.assign(who.code, design.groups, header["fields"], who.seed)
        facts = {"method": design.groups.method, "block": found.block, "size": found.size}
        event = journal.append("event", name=GROUP, group=found.group, place=found.place, **facts)
    group, place = event.get("group"), event.get("place")
    if not isinstance(group, str) or group not in design.groups.names or type(place) is not int or place < 0:
        raise RecordingError(f"{journal.place.journal}: the group {str(group)[:40]!r} is not in the experiment.")
    return design.for_group(group), dataclasses.replace(who, slot=place)


def carry_over(design: Design, journal: Journal, who: Participant, out: Path) -> Participant:
    """Return the participant with the thresholds of earlier sessions, which are recorded in the journal.

    Raises
    ------
    RecordingError
        If a journal of the participant cannot be read.
    JournalFault
        If the thresholds cannot be written.
    """
    if not design.schedule.carry_over:
        return who
    if not any(one["record"] == "event" and one["name"] == CARRIED for one in journal.records):
        tracks = earlier_thresholds(design.schedule, out, who.code, design.experiment.name, who.session)
        journal.append("event", name=CARRIED, tracks=tracks)
    return dataclasses.replace(who, carried=carried_thresholds(replay(journal.records)))


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


def reopen(folder: Path) -> tuple[Design, Journal, Participant]:
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
        state, policy, most_age = replay(journal.records), design.resume.policy, design.resume.most_age
        if state.end is not None:
            ended = f"{place.folder} has ended ({state.end['reason']})"
            if state.end["reason"] != ENDED_BY_A_PERSON:
                raise ConfigurationError(f"{ended}, so it cannot be resumed.")
            if design.experiment.blind or design.groups.blind:
                raise ConfigurationError(f"{ended}. It is blind, and may have been decoded: it cannot be resumed.")
        if policy == "restart":
            raise ConfigurationError(
                f"resume.policy = 'restart': {place.folder} cannot be resumed; begin another session (--session)."
            )
        age = state.age()
        if age > timedelta(seconds=most_age):
            raise ConfigurationError(
                f"{place.folder} was interrupted {age / timedelta(hours=1):.1f} h ago, and resume.most_age = "
                f"{most_age:g} s: begin another session (--session)."
            )
    except BaseException:
        journal.close()
        raise
    header = journal.records[0]
    return design, journal, Participant(place.participant, place.session, header["slot"] or 0, header["seed"])


def _same_design(place: SessionFolder, journal: Journal) -> Design:
    """Return the design of the session, unless the files of the session or of the device have changed."""
    try:
        sidecar = parsed(read_small(place.sidecar))
        text, file = str(sidecar["design_text"]), str(sidecar["design_file"])
        csv_text = str(sidecar["conditions_text"]) if "conditions_text" in sidecar else None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordingError(f"{place.sidecar} does not contain the experiment of the session ({error}).") from error
    design, header = design_of(Source(Path(file), text), csv_text), journal.records[0]
    if design.sha256 != header["design_sha256"] or design.tables["conditions"] != header["design"].get("conditions"):
        raise RecordingError(f"{place.sidecar}: its experiment is not the one of the journal; it was changed.")
    before, now = header["device"], device_facts(design)
    for name in ("name", "parameter_file_hash", "friction_file_hash", "measured_file_hash"):
        if name in before and before[name] != now.get(name):  # missing in old journals
            raise ConfigurationError(
                f"{name} of the device was {before[name]} when the session began, and is {now.get(name)} now: put back "
                "the calibration that it began with, or begin another session."
            )
    if sidecar.get("configuration", {}).get("scene") != design.session.as_dict().get("scene"):
        raise ConfigurationError(
            f"{place.sidecar}: the scene of the session is not the one that it began with: put back its file, or begin "
            "another session."
        )
    return design
