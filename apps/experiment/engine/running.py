"""Execution of complete sessions with participants or simulated observers, one or many at once."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from apps.experiment.design import Design, read_design
from apps.experiment.engine.answering import Simulated
from apps.experiment.engine.display import Display
from apps.experiment.engine.live.attended import require_display, run_with_screens
from apps.experiment.engine.live.onlookers import Onlookers, lsl_of
from apps.experiment.engine.live.stage import Followers, LiveStage
from apps.experiment.engine.offline import OfflineStage
from apps.experiment.engine.opening import Manner, Request, begin, take_up
from apps.experiment.engine.presenting import Respondent
from apps.experiment.engine.sequence import Participant, TrialSequence
from apps.experiment.engine.session import ExperimentSession, StageMaker
from apps.experiment.journal import Journal, reserve_slot, write_table
from apps.experiment.observers import make_observer
from apps.experiment.procedures import person_seed
from apps.session.application import print_status
from apps.shared.workers import workers
from apps.stream.address import require_lsl
from devices import is_virtual
from haptics.errors import ConfigurationError


def run_session(design: Design, request: Request) -> dict[str, Any]:
    """Run a new session.

    Return the result for the command line.
    """
    _require_possible(design, request.simulated, request.manner)
    journal, who = begin(design, request)
    with journal:
        return _sit(design, journal, who, request.manner)


def resume_session(folder: Path, manner: Manner | None = None) -> dict[str, Any]:
    """Continue an interrupted session."""
    design, journal, who = take_up(folder)
    manner = manner or Manner()
    with journal:
        _require_possible(design, journal.records[0]["observer"] is not None, manner)
        journal.append("event", name="resumed", torn_bytes=journal.torn)
        return _sit(design, journal, who, manner)


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
        raise ConfigurationError("--lsl: a session without a clock is not streamed; leave it out, or say --clock wall.")
    if manner.lsl:
        require_lsl()


def _is_live(design: Design, simulated: bool, manner: Manner) -> bool:
    """Return True if the session runs in real time, as with a participant or a physical device."""
    return manner.live or manner.screens or not simulated or not is_virtual(design.session.device)


def run_sessions(file: Path, requests: Sequence[Request], count: int) -> list[dict[str, Any]]:
    """Run sessions of simulated participants in parallel, with the arrival order of `requests`."""
    design = read_design(file)
    for request in requests:
        reserve_slot(request.out, design.experiment.name, request.code)
    count = min(count or os.cpu_count() or 1, len(requests))
    if count == 1:
        return [run_session(design, request) for request in requests]
    with workers("processes", count) as (pool, _):
        return list(pool.map(_run_one, [file] * len(requests), requests))


def _run_one(file: Path, request: Request) -> dict[str, Any]:
    return run_session(read_design(file), request)


def _sit(design: Design, journal: Journal, who: Participant, manner: Manner) -> dict[str, Any]:
    begun = time.monotonic()
    simulated = journal.records[0]["observer"] is not None
    observer = functools.partial(_observer, design, who) if simulated else None
    with lsl_of(design, journal, manner.lsl) as streams:
        if observer is None or manner.screens:
            experiment_session, reason = run_with_screens(design, journal, who, streams, observer)
        else:
            follow = Onlookers(*streams) if _is_live(design, simulated, manner) else None
            experiment_session, reason = _run_alone(design, journal, who, observer, follow)
    took = time.monotonic() - begun
    return {**_session_result(experiment_session, who, reason, took), "table": _tabulated(journal)}


def _tabulated(journal: Journal) -> str | None:
    """Write the table of trials.

    Return its path, or log the reason and return None if it cannot be written.
    """
    try:
        return str(write_table(journal.place))
    except OSError as error:
        print_status(
            f"{journal.place.table} could not be written ({error}); nothing is lost, every export makes it anew."
        )
        return None


def _observer(design: Design, who: Participant, sequence: TrialSequence) -> Respondent:
    """Return the respondent with the simulated observer of a participant."""
    observer = make_observer(design.tables.get("observer", {}), seed=person_seed(who.seed, who.code))
    return Simulated(observer, sequence, needs_rows=observer.needs_rows, time_out=design.trials.time_out)


def _run_alone(
    design: Design,
    journal: Journal,
    who: Participant,
    respondent: Callable[[TrialSequence], Respondent],
    follow: Followers | None,
) -> tuple[ExperimentSession, str]:
    """Run a session without screens, in real time if `follow` is given."""
    stage: StageMaker = OfflineStage if follow is None else functools.partial(LiveStage, follow=follow)
    experiment_session = ExperimentSession(
        design, who, journal, respondent=respondent, stage=stage, display=Display(), again=follow is None
    )
    return experiment_session, experiment_session.run()


def _session_result(
    experiment_session: ExperimentSession, who: Participant, reason: str, took: float
) -> dict[str, Any]:
    """Return the result of a session for the command line."""
    journal = experiment_session.journal
    return {
        "folder": str(journal.place.folder),
        "participant": who.code,
        "session": who.session,
        "trials": sum(one.start["kind"] != "practice" for one in experiment_session.state.counted_attempts.values()),
        "repeated": experiment_session.state.repeated,
        "journal": str(journal.place.journal),
        "reason": reason,
        "blocks": len(experiment_session.state.blocks),
        "tracks": {} if experiment_session.design.experiment.blind else dict(experiment_session.sequence.tracks()),
        "simulated": journal.records[0]["observer"] is not None,
        "elapsed_s": round(took, 3),
    }
