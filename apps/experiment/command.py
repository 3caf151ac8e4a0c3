"""Command ``haptics experiment``, with one sub-command for each kind of work."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.command import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.experiment.design import Design

# Modules with large dependencies are imported where they are used.

_Option = tuple[str, dict[str, Any]]


def _option(name: str, text: str, **settings: Any) -> _Option:
    return name, {"help": text, **settings}


_FILE = _option("file", "file of the experiment", metavar="FILE.toml", type=Path)
_FOLDERS = _option(
    "folders", "folder of a session, of a participant or of all sessions", metavar="FOLDER", type=Path, nargs="+"
)
_WORKERS = _option("--workers", "number of processes; default: one per processor", metavar="N", type=int, default=0)
_LSL = _option("--lsl", "stream ticks and records by the Lab Streaming Layer", action="store_true")

_OUTSIDE = _option(
    "--outside-window",
    "reason to run the session although the schedule does not allow it; it is recorded",
    metavar="REASON",
)

_FORMATS = ("csv", "psignifit", "bids", "psych-ds")

_LICENSES = ("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "ODC-By-1.0", "PDDL-1.0")

_OPTIONS: dict[str, list[_Option]] = {
    "run": [
        _FILE,
        _option("--observer", "let a simulated observer answer, in simulated time", choices=("simulated",)),
        _option(
            "--clock",
            "of an observer: off: as fast as the machine can, the default on virtual devices; wall: real time",
            choices=("wall", "off"),
        ),
        _option("--participant", "code of the participant, never a name", metavar="CODE"),
        _option("--participants", "number of simulated participants, sim01 and so on", metavar="N", type=int),
        _option(
            "--session",
            "number of the participant's session; default: 1, or with a schedule the next one, for simulated observers "
            "all of them",
            metavar="N",
            type=int,
        ),
        _option("--replaces", "excluded participant whose place and group a new participant takes", metavar="CODE"),
        _option("--date", "simulated day of a simulated observer's session, with a schedule", metavar="YYYY-MM-DD"),
        _OUTSIDE,
        _option("--seed", "seed of all random numbers; replaces that of the file", metavar="N", type=int),
        _option("--out", "folder of all sessions", metavar="DIR", type=Path, default=Path("experiments")),
        _option("--report", "report of the participants, written at the end", metavar="FILE.html", type=Path),
        _WORKERS,
        _option(
            "--field", "data about the participant", dest="fields", metavar="NAME=VALUE", action="append", default=[]
        ),
        _option(
            "--screens", "rehearsal: an observer answers in real time, and both screens are shown", action="store_true"
        ),
        _LSL,
    ],
    "resume": [
        _option("folder", "folder of the session (ses-01), or its journal", metavar="FOLDER", type=Path),
        _option(
            "--clock", "clock of a simulated observer; must be that of the interrupted session", choices=("wall", "off")
        ),
        _option("--screens", "show both screens (rehearsal)", action="store_true"),
        _LSL,
        _OUTSIDE,
    ],
    "export": [
        _FOLDERS,
        _option("--to", f"one of {', '.join(_FORMATS)}", metavar="FORMAT", choices=_FORMATS, required=True),
        _option("--out", "new folder, or the folder of an earlier export", metavar="DIR", type=Path, required=True),
    ],
    "power": [
        _option("file", "file of the experiment; its table power defines the question", metavar="FILE.toml", type=Path),
        _option("--ratio", "effect to detect; replaces power.ratio", metavar="R", type=float),
        _option("--people", "number of simulated people, in place of power.people", metavar="N", type=int),
        _option(
            "--participants", "numbers of participants to evaluate; replaces power.participants", metavar="N,N,..."
        ),
        _option("--seed", "seed of the simulation; replaces power.seed", metavar="N", type=int),
        _WORKERS,
        _option("--executor", "kind of workers on this machine", choices=("processes", "threads"), default="processes"),
        _option("--cluster", "address of a Dask scheduler, or local to start one", metavar="ADDRESS|local"),
    ],
    "preregister": [
        _FILE,
        _option("--power", "output of 'haptics experiment power --json'", metavar="FILE.json", type=Path),
        _option(
            "--participants", "planned number of participants (default: the number in --power)", metavar="N", type=int
        ),
        _option("--out", "new folder for preregistration.md and .json", metavar="DIR", type=Path),
    ],
    "report": [
        _FOLDERS,
        _option("--out", "report to write", metavar="FILE.html", type=Path, required=True),
        _option(
            "--percent",
            "percentage of correct answers at which differences are read off (default: the file's analysis.percent, or "
            "75, or the target of its staircases)",
            metavar="P",
            type=float,
            action="append",
        ),
    ],
    "pack": [
        _FOLDERS,
        _option("--undo", "restore the recordings", action="store_true"),
    ],
    "decode": [_FOLDERS],
    "archive": [
        _FOLDERS,
        _option("--license", f"one of {', '.join(_LICENSES)}", metavar="ID", choices=_LICENSES, required=True),
        _option("--author", "author of the data set; repeatable", metavar="NAME", action="append", required=True),
        _option(
            "--out", "new folder or ZIP file, or an earlier archive", metavar="DIR|FILE.zip", type=Path, required=True
        ),
        _option("--with-text", "include answers in free text, which may identify people", action="store_true"),
    ],
    "exclude": [
        _option("folder", "folder of all sessions", metavar="FOLDER", type=Path),
        _option("code", "code of the participant", metavar="CODE"),
        _option("--reason", "reason, without names", metavar="TEXT", required=True),
        _option("--revoke", "include the participant again", action="store_true"),
    ],
    "status": [
        _option("folder", "folder of all sessions", metavar="FOLDER", type=Path),
        _option("--date", "day of the status; default: today", metavar="YYYY-MM-DD"),
        _option("--out", "page to write", metavar="FILE.html", type=Path),
        _option("--language", "language of the page; default: that of the experiment", choices=("en", "de")),
    ],
    "erase": [
        _option("code", "code of the participant", metavar="CODE"),
        _option("--out", "folder of all sessions", metavar="DIR", type=Path, default=Path("experiments")),
        _option("--reason", "reason for the record of erasures, without names", metavar="TEXT", default=""),
        _option("--copies", "delete exports, reports and other files with the code too", action="store_true"),
        _option("--yes", "delete the files; otherwise they are only counted", action="store_true"),
    ],
}
"""Options of each sub-command."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands to the command's parser."""
    kinds = parser.add_subparsers(required=True, metavar="SUB", dest="work")
    for name, (summary, _) in WORK.items():
        own = kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        for option, settings in _OPTIONS[name]:
            own.add_argument(option, **settings)
        own.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(options: argparse.Namespace) -> Answer:
    """Run the chosen sub-command."""
    return WORK[options.work][1](options)


# --- sessions ---


def run_new(options: argparse.Namespace) -> Answer:
    """Run one or several sessions with a participant or with simulated observers."""
    from apps.experiment.design import read_design
    from apps.experiment.session.running import Manner, Request, run_session, run_sessions

    simulated, count = options.observer == "simulated", options.participants
    if count is not None and (not simulated or count < 1 or options.participant):
        raise ConfigurationError(
            f"--participants {count}: must be at least 1, with --observer simulated and without --participant."
        )
    if options.replaces and count is not None:
        raise ConfigurationError(
            f"--replaces {options.replaces}: needs --participant, the code of the new participant."
        )
    if options.lsl and count is not None:
        raise ConfigurationError("--lsl: streams one session; leave out --participants.")
    if not simulated and not options.participant:
        raise ConfigurationError("--participant is missing: the code of the participant, such as P01; never a name.")
    if options.report is not None:
        _require_folder(options.report)
    design = read_design(options.file)
    seed = design.experiment.seed
    if options.seed is not None:
        seed = dataclasses.replace(design.experiment, seed=options.seed).seed
    fields = _parse_fields(options.fields)
    if options.screens and (count is not None or options.clock == "off"):
        raise ConfigurationError("--screens: shows one session in real time; leave out --participants and --clock off.")
    manner = Manner(options.clock == "wall", options.lsl, options.screens)
    codes = [f"sim{number + 1:02d}" for number in range(count)] if count else [options.participant or "sim01"]
    numbers, day = _sessions(design, options, codes[0])
    reason = _reason_outside(options)
    results = []
    for number in numbers:
        requests = [
            Request(code, number, seed, options.out, fields, simulated, manner, day, reason, options.replaces or "")
            for code in codes
        ]
        if len(requests) == 1:
            results.append(run_session(design, requests[0]))
        else:
            results += run_sessions(options.file, requests, options.workers)
    together = results[0]
    if len(results) > 1:
        together = {
            "folder": str(options.out),
            "participant": [one["participant"] for one in results],
            "trials": sum(one["trials"] for one in results),
            "repeated": sum(one["repeated"] for one in results),
            "journal": [one["journal"] for one in results],
            "sessions": results,
        }
    words = "\n".join(describe(one) for one in results)
    answer = Answer(together, words)
    return answer if options.report is None else _with_report(answer, results, options.report)


def _with_report(answer: Answer, results: Sequence[Mapping[str, Any]], out: Path) -> Answer:
    """Write the report of participants whose sessions have ended; a failure keeps the results of the sessions."""
    folders = list(dict.fromkeys(Path(one["folder"]).parent for one in results))
    try:
        summary, found = _write_report(folders, out, [])
    except Exception as error:  # an error of any kind must not hide the results
        again = shlex.join(["haptics", "experiment", "report", *map(str, folders), "--out", str(out)])
        reason = " ".join(str(error).split()) or type(error).__name__
        failure = f"--report: not written ({reason}). The data are complete; write the report with: {again}"
        result = answer.result | {"report": None, "report_error": failure}
        return Answer(result, answer.text, status=2, error=failure)
    return Answer(answer.result | {"report": summary}, f"{answer.text}\n{found}")


def _parse_fields(texts: Sequence[str]) -> dict[str, str]:
    """Return the data about the participant from the texts ``name=value`` of ``--field``."""
    fields = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"--field {text}: must have the form name=value, for instance age_band=20-29.")
        fields[name.strip()] = value.strip()
    return fields


def _sessions(design: Design, options: argparse.Namespace, code: str) -> tuple[list[int], date | None]:
    """Return the numbers of the sessions to run, and the simulated day."""
    from apps.experiment.journal.folder import require_code
    from apps.experiment.schedule import next_session

    count, simulated, day = design.schedule.sessions, options.observer == "simulated", _day(options.date, "--date")
    if options.outside_window is not None and not count:
        raise ConfigurationError(f"--outside-window: {options.file} has no table [schedule].")
    if day is not None and not (count and simulated and options.session is not None):
        raise ConfigurationError(
            "--date: needs --observer simulated, --session, and an experiment with the table [schedule]."
        )
    if options.session is not None or not count:
        return [1 if options.session is None else options.session], day
    if simulated:
        return list(range(1, count + 1)), None
    return [next_session(options.out, require_code(code), design.experiment.name)], None


def _reason_outside(options: argparse.Namespace) -> str:
    """Return the reason for a session outside its window, empty if it is not given."""
    from apps.experiment.journal.folder import require_reason

    return "" if options.outside_window is None else require_reason(options.outside_window, "--outside-window")


def _day(text: str | None, option: str) -> date | None:
    from apps.experiment.schedule import parse_day

    try:
        return None if text is None else parse_day(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} {text[:40] if text else text}: {error}.") from error


def resume(options: argparse.Namespace) -> Answer:
    """Continue an interrupted session."""
    from apps.experiment.session.running import Manner, resume_session

    manner = Manner(options.clock == "wall", options.lsl, options.screens)
    result = resume_session(options.folder, manner, _reason_outside(options))
    return Answer(result, describe(result))


def describe(result: dict[str, Any]) -> str:
    """Return the summary of a session as text."""
    lines = [
        f"participant {result['participant']}, session {result['session']}"
        f"{', group ' + result['group'] if 'group' in result else ''}: {result['trials']} trials, "
        f"{result['repeated']} repeated; {result['reason']}",
        f"journal: {result['journal']}",
    ]
    for name, report in result["tracks"].items():
        if report.get("estimate") is not None:
            target = report.get("target_percent")
            where = f" at {target:.0f} % correct" if target is not None else ""
            lines.append(f"  {name}: {report['estimate']:.4g}{where}, after {report['trials']} trials")
    if "next_session" in result:
        lines.append("session {session} is due {due}".format(**result["next_session"]))
    return "\n".join(lines)


# --- data of sessions ---


def _left_out(count: int) -> str:
    return f"left out: {count} session{'' if count == 1 else 's'} of excluded participants or training"


def export(options: argparse.Namespace) -> Answer:
    """Convert the data of sessions to other formats."""
    from apps.experiment.export import export_data_set

    sessions, left_out = export_data_set(options.folders, options.out, options.to)
    trials = sum(len(session.rows) for session in sessions)
    result = {
        "out": str(options.out),
        "format": options.to,
        "sessions": len(sessions),
        "participants": len({session.place.participant for session in sessions}),
        "trials": trials,
        "left_out": len(left_out),
    }
    words = f"{len(sessions)} sessions, {trials} rows: {options.out}"
    words += f"\n{_left_out(len(left_out))}" if left_out else ""
    return Answer(result, words)


def report(options: argparse.Namespace) -> Answer:
    """Analyse every session and write an HTML file."""
    _require_folder(options.out)  # before the imports and the analysis, which take a while
    return Answer(*_write_report(options.folders, options.out, options.percent or []))


def _require_folder(file: Path) -> None:
    """Raise unless a file can be written because its folder exists."""
    if not file.parent.is_dir():
        raise ConfigurationError(f"{file}: cannot be written (there is no folder {file.parent}).")


def _write_report(folders: Sequence[Path], out: Path, percent: Sequence[float]) -> tuple[dict[str, Any], str]:
    """Analyse the sessions in folders, write the report, and return its content for JSON and its results as text."""
    from apps.experiment.report.analysis import analyse, analyse_group, as_json, staircase_percent
    from apps.experiment.report.data import read_experiment
    from apps.experiment.report.factors import analyse_effects
    from apps.experiment.report.forms import analyse_forms
    from apps.experiment.report.page import methods
    from apps.experiment.report.page import report as page_of
    from apps.experiment.settings import AnalysisSettings
    from apps.experiment.stimulus import measure
    from haptics.files import write_atomically

    experiment = read_experiment(folders, measure)
    table = experiment.table("analysis")
    percent = percent or ([] if table.get("percent") else staircase_percent(experiment))
    settings = AnalysisSettings.of(table, percent)
    people = [analyse(experiment, person, settings) for person in experiment.people]
    group = analyse_group(experiment, people, settings)
    effects = analyse_effects(experiment, people, settings)
    forms = analyse_forms(experiment, {one.code for one in people if one.excluded})
    write_atomically(out, page_of(experiment, people, group, settings, effects, forms))
    result = {
        "experiment": experiment.name,
        "task": experiment.task_name,
        "axis": experiment.axis,
        "simulated": experiment.simulated,
        "methods": methods(experiment, people, settings),
        "participants": as_json(people),
        "group": as_json(group),
        "left_out": as_json(experiment.left_out),
        **({"effects": as_json(effects)} if effects else {}),
        **({"forms": as_json(forms)} if forms else {}),
        "report": str(out),
    }
    return result, describe_report(result)


def describe_report(result: Mapping[str, Any]) -> str:
    """Return the results of the group as text."""
    from calibration.psychometric import Estimate

    group, percent = result["group"], "{percent:g} % correct".format
    count = group["participants"]
    lines = [f"{result['experiment']}: {count} participant{'s' if count != 1 else ''}, report in {result['report']}"]
    if result["left_out"]:
        lines.append(f"  {_left_out(len(result['left_out']))}")
    for one in group["conditions"]:
        if one["jnd"] is None:
            lines.append(f"  {one['condition']}: no difference at {percent(**one)} within the levels")
        for name, key in (("difference", "jnd"), ("Weber fraction", "weber_fraction")):
            if one[key] is not None:
                mean = Estimate(**one[key]["mean"])
                value = mean.text() if one[key]["participants"] > 1 else f"{mean.value:.3g}"
                true = one["true_weber_fraction"] if key == "weber_fraction" else None
                simulated = f", of the simulated observers {true:.3g}" if true else ""
                lines.append(f"  {one['condition']}: {name} at {percent(**one)} {value}{simulated}")
    if group["magnitude"] is not None:
        lines.append(f"  exponent of the estimates {Estimate(**group['magnitude']['exponent']).text()}")
    for one in result.get("effects", ()):
        if one["ratio"] is not None:
            levels = f"{one['factor']}, {one['second']} to {one['first']}"
            lines.append(f"  ratio of {levels}, at {percent(**one)} {Estimate(**one['ratio']).text()}")
    return "\n".join(lines)


def pack(options: argparse.Namespace) -> Answer:
    """Compress every recording of every session without loss, or restore it.

    The stimuli are measured and stored first, so that reports need no ticks.
    """
    from apps.experiment.journal.folder import sessions_below
    from apps.experiment.journal.journal import read_journal, replay
    from apps.experiment.stimulus import measure
    from apps.pack.packing import pack as compress
    from apps.pack.packing import unpack
    from apps.shared.display import grouped
    from haptics.recording.recording import TICKS

    count = changed = 0
    for place in (place for folder in options.folders for place in sessions_below(folder)):
        if not options.undo:
            state = replay(read_journal(place.journal).records)
            for attempt in state.attempts:
                for name in state.recordings_of(attempt)[:1]:
                    if (place.inside(name) / TICKS).exists():
                        measure(place.inside(name), attempt.start)
        found = {
            path.parent for pattern in ("*", "blocks/*") for path in place.folder.glob(f"{pattern}/recording.json")
        }
        for recording in sorted(found):
            saved = unpack(recording) if options.undo else compress(recording)
            count += saved != 0
            changed += saved
    words = f"{count} recordings {'restored' if options.undo else 'packed'}, with {grouped(abs(changed))} bytes "
    words += "more" if options.undo else "less"
    return Answer({"recordings": count, "bytes": changed if options.undo else -changed}, words)


def decode(options: argparse.Namespace) -> Answer:
    """Show the codes of blind sessions. Raises without output if a session has not ended."""
    from apps.experiment.journal.blinding import decode as decode_session
    from apps.experiment.journal.folder import sessions_below

    sessions = [place for folder in options.folders for place in sessions_below(folder)]
    opened = [(place, decode_session(place)) for place in sessions]
    result = {"sessions": [{"folder": str(place.folder), "codes": codes.stimuli} for place, codes in opened]}
    lines = []
    for place, codes in opened:
        lines.append(f"{place.stem}: the table is the one that was sealed before the first trial")
        lines += [f"  {code}  {json.dumps(stimulus, ensure_ascii=False)}" for code, stimulus in codes.stimuli.items()]
    return Answer(result, "\n".join(lines))


def archive(options: argparse.Namespace) -> Answer:
    """Write the data set for a repository."""
    from apps.experiment.export.archive import archive as write_archive

    result = write_archive(
        options.folders, options.out, licence=options.license, authors=options.author, with_text=options.with_text
    )
    words = f"{result['sessions']} sessions, {options.license}: {options.out}"
    if result["left_out"]:
        words += f"\n{result['left_out']} sessions were left out: publication was not agreed to"
    if result["excluded"]:
        words += f"\n{_left_out(result['excluded'])}"
    return Answer(result, words)


def erase(options: argparse.Namespace) -> Answer:
    """Delete the data of a participant, and record that it happened."""
    from apps.experiment.journal.erasure import RECORD, find_participant
    from apps.experiment.journal.erasure import erase as erase_participant
    from apps.experiment.journal.folder import require_reason
    from apps.shared.display import grouped

    reason = require_reason(options.reason) if options.reason else ""
    found = find_participant(options.out, options.code)
    result = {
        "participant": found.code,
        "erased": options.yes,
        "sessions": [str(one) for one in found.sessions],
        "reservations": [str(one) for one in found.reservations],
        "files": found.files,
        "bytes": found.bytes,
        "copies": [str(one) for one in found.copies],
        "mentions": [str(one) for one in found.mentions],
        "unsearched": [str(one) for one in found.unsearched],
    }
    words = f"{found.code}: {len(found.sessions)} sessions, {found.files} files, {grouped(found.bytes)} bytes"
    if options.yes:
        result["record"] = erase_participant(found, reason, copies=options.copies)
        words += f" erased; recorded in {options.out / RECORD}"
    else:
        words += " would be deleted permanently; nothing has been deleted yet. Add --yes to delete them"
    copies = "are deleted too" if options.copies else "are kept; add --copies to delete them too"
    for paths, text in (
        (found.copies, f"other files and exports that contain the code {copies}"),
        (found.mentions, "files of other participants or of the experiment contain the word; not deleted"),
        (found.unsearched, "files could not be searched completely; not deleted, look into them yourself"),
    ):
        if paths:
            words += f"\n{len(paths)} {text}:"
            words += "".join(f"\n  {one}" for one in paths[:20])
    return Answer(result, words)


def exclude(options: argparse.Namespace) -> Answer:
    """Exclude a participant, or revoke the exclusion. The data are kept."""
    from apps.experiment.journal.exclusion import ExclusionLog

    log, code = ExclusionLog(options.folder), options.code
    if options.revoke:
        log.include(code, options.reason)
    else:
        log.exclude(code, options.reason)
    result = {"participant": code, "excluded": not options.revoke, "reason": options.reason}
    words = f"{code} is included again" if options.revoke else f"{code} is excluded; the data are kept"
    return Answer(result, f"{words}; recorded in {log.folder}")


def status(options: argparse.Namespace) -> Answer:
    """Show which participants are due."""
    from apps.experiment.status import as_json, as_page, as_text, read_status
    from haptics.files import write_atomically

    found = read_status(options.folder, _day(options.date, "--date"))
    words = "\n\n".join(map(as_text, found))
    result: dict[str, Any] = {"experiments": [as_json(one) for one in found]}
    if options.out is not None:
        if not options.out.parent.is_dir():
            raise ConfigurationError(f"{options.out}: cannot be written (there is no folder {options.out.parent}).")
        write_atomically(options.out, as_page(found, options.language or ""))
        words, result["page"] = f"{words}\npage: {options.out}", str(options.out)
    return Answer(result, words)


# --- planning ---


def power(options: argparse.Namespace) -> Answer:
    """Simulate observers and estimate the number of participants. Options override the table ``power``."""
    from concurrent.futures import BrokenExecutor

    from apps.experiment.design import design_of
    from apps.experiment.observers import ObserverSettings
    from apps.experiment.power import STATEMENT, make_study, outcome, simulate_pool
    from apps.experiment.power import describe as describe_power
    from apps.experiment.settings import PowerSettings
    from apps.experiment.source import Source
    from apps.shared.terminal import Line, bar
    from apps.shared.workers import workers
    from haptics.settings import build

    if options.workers < 0:
        raise ConfigurationError(f"--workers {options.workers}: must be at least 0; 0 is one a processor.")
    source = Source.read(options.file)
    design = design_of(source)
    given = {name: getattr(options, name) for name in ("ratio", "people", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.participants is not None:
        try:
            given["participants"] = [int(each) for each in options.participants.split(",")]
        except ValueError as error:
            raise ConfigurationError(
                f"--participants {options.participants}: must be whole numbers with commas, such as 8,12,16."
            ) from error
    with source.locating("power") if not given else contextlib.nullcontext():
        settings = build(PowerSettings, {**source.tables.get("power", {}), **given}, "power")
    observer = source.tables.get("observer", {})
    with source.locating("observer"):
        reaction_time = build(ObserverSettings, observer, "observer").reaction_time
    with source.locating("power"):
        study = make_study(design, settings, observer)
    start, people = time.monotonic(), settings.people
    with Line() as line, contextlib.ExitStack() as stack:

        def show(share: float) -> None:
            line.show(f"{bar(share)} {round(share * people)} of {people} simulated people")

        executor = None
        if options.workers != 1 or options.cluster:
            executor, _ = stack.enter_context(workers(options.cluster or options.executor, options.workers))
        try:
            results = simulate_pool(study, people, executor=executor, progress=show)
        except BrokenExecutor as error:
            raise ConfigurationError(
                "a worker has died, perhaps for want of memory: take fewer of them, such as --workers 1."
            ) from error
    seconds = time.monotonic() - start
    result = outcome(design, study, settings, results, reaction_time)
    result |= {"seconds": seconds, "statement": STATEMENT}
    return Answer(result, describe_power(result))


def preregister(options: argparse.Namespace) -> Answer:
    """Collect the decisions that an experiment file fixes, and write them as a page."""
    from apps.experiment.design import read_design
    from apps.experiment.export.formats import new_export, write_json, write_text
    from apps.experiment.preregister import as_markdown, preregistration, read_power

    if options.participants is not None and options.participants < 1:
        raise ConfigurationError(f"--participants {options.participants}: must be at least 1.")
    planned = None if options.power is None else read_power(options.power)
    facts = preregistration(read_design(options.file), planned, options.participants)
    page = as_markdown(facts)
    if options.out is None:
        return Answer(facts, page)
    with new_export(options.out) as folder:
        write_text(folder, "preregistration.md", page)
        write_json(folder, "preregistration.json", facts)
    missing = [*facts["missing"], *([] if facts["participants"] else ["the number of participants"])]
    words = f"\nnot stated yet: {', '.join(missing)}" if missing else ""
    return Answer({**facts, "out": str(options.out)}, f"{options.out / 'preregistration.md'}{words}")


WORK: dict[str, tuple[str, Callable[[argparse.Namespace], Answer]]] = {
    "run": ("run a session of an experiment", run_new),
    "resume": ("continue a session that was interrupted", resume),
    "export": ("write the data of sessions in the formats of other programs", export),
    "power": ("plan how many participants an experiment needs, with simulated ones", power),
    "preregister": ("write the decisions that the file of an experiment fixes beforehand", preregister),
    "report": ("write a report: participants and group, figures, methods", report),
    "pack": ("make the recordings of sessions smaller, without loss", pack),
    "decode": ("open the sealed codes of blind sessions that have ended", decode),
    "archive": ("write the data of sessions for a repository, with licence and codebook", archive),
    "exclude": ("exclude a participant from reports and exports, with a record; the data are kept", exclude),
    "status": ("show which participants are due for their next session", status),
    "erase": ("delete the data of a participant on request, with a record", erase),
}
"""Summary and function of each sub-command."""
