"""Sessions from their first to their last trial, by whoever answers them, one or many of them."""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from apps.experiment.design import Design, read_design
from apps.experiment.engine.answering import Simulated
from apps.experiment.engine.audience import Audience
from apps.experiment.engine.course import Course, Participant
from apps.experiment.engine.live.attended import require_display, sit_with_person
from apps.experiment.engine.live.onlookers import Onlookers, lsl_of
from apps.experiment.engine.live.stage import Followers, LiveStage
from apps.experiment.engine.offline import OfflineStage
from apps.experiment.engine.opening import Request, begin, take_up
from apps.experiment.engine.presenting import Respondent
from apps.experiment.engine.sitting import Sitting, StageMaker
from apps.experiment.journal import Journal, reserve_slot, write_table
from apps.experiment.observers import make_observer
from apps.experiment.procedures import person_seed
from apps.session.application import tell_stderr
from apps.stream.address import require_lsl
from devices import is_virtual
from haptics.errors import ConfigurationError


def run_session(design: Design, request: Request) -> dict[str, Any]:
    """Run a session; return what the command prints of it."""
    live = _is_live(design, request.simulated, request.live)
    _require_possible(design, request.simulated, live, request.lsl)
    journal, who = begin(design, request)
    with journal:
        return _sit(design, journal, who, live=live, lsl=request.lsl)


def resume_session(folder: Path, *, live: bool = False, lsl: bool = False) -> dict[str, Any]:
    """Go on with a session that was interrupted."""
    design, journal, who = take_up(folder)
    with journal:
        simulated = journal.records[0]["observer"] is not None
        live = _is_live(design, simulated, live)
        _require_possible(design, simulated, live, lsl)
        journal.append("event", name="resumed", torn_bytes=journal.torn)
        return _sit(design, journal, who, live=live, lsl=lsl)


def _require_possible(design: Design, simulated: bool, live: bool, lsl: bool) -> None:
    """Raise, before anything is written, where a hand, a screen or a stream that is wanted cannot be."""
    if not simulated:
        require_display()
    elif design.session.hand == "mouse":
        raise ConfigurationError(
            "hand.name = 'mouse': a simulated observer moves no mouse; take another hand, such as minimum-jerk."
        )
    if lsl and not live:
        raise ConfigurationError("--lsl: a session without a clock is not streamed; leave it out, or say --clock wall.")
    if lsl:
        require_lsl()


def _is_live(design: Design, simulated: bool, wanted: bool) -> bool:
    """Tell whether a session follows the wall's clock: a person does, and so does a device that is not virtual."""
    return wanted or not simulated or not is_virtual(design.session.device)


def run_sessions(file: Path, requests: Sequence[Request], workers: int) -> list[dict[str, Any]]:
    """Run the sessions of several simulated participants side by side, each in the order of arrival of `requests`."""
    design = read_design(file)
    for request in requests:
        reserve_slot(request.out, design.experiment.name, request.code)
    workers = min(workers or os.cpu_count() or 1, len(requests))
    if workers == 1:
        return [run_session(design, request) for request in requests]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        return list(pool.map(_run_one, [file] * len(requests), requests))


def _run_one(file: Path, request: Request) -> dict[str, Any]:
    return run_session(read_design(file), request)


def _sit(design: Design, journal: Journal, who: Participant, *, live: bool, lsl: bool) -> dict[str, Any]:
    begun = time.monotonic()
    with lsl_of(design, journal, lsl) as streams:
        if journal.records[0]["observer"] is None:
            sitting, reason = sit_with_person(design, journal, who, streams)
        else:
            sitting, reason = _sit_with_observer(design, journal, who, Onlookers(*streams) if live else None)
    took = time.monotonic() - begun
    return {**_told(sitting, who, reason, took), "table": _tabulated(journal)}


def _tabulated(journal: Journal) -> str | None:
    """Make the session's table of trials; return its file, None (and say why) where it cannot be written."""
    try:
        return str(write_table(journal.place))
    except OSError as error:
        tell_stderr(
            f"{journal.place.table} could not be written ({error}); nothing is lost, every export makes it anew."
        )
        return None


def _sit_with_observer(
    design: Design, journal: Journal, who: Participant, follow: Followers | None
) -> tuple[Sitting, str]:
    """Run a session with a simulated observer, by the wall's clock where somebody follows it."""

    def respondent(course: Course) -> Respondent:
        seed = person_seed(who.seed, who.code)
        observer = make_observer(design.tables.get("observer", {}), seed=seed)
        return Simulated(observer, course, needs_rows=observer.needs_rows)

    stage: StageMaker = OfflineStage if follow is None else functools.partial(LiveStage, follow=follow)
    sitting = Sitting(
        design, who, journal, respondent=respondent, stage=stage, audience=Audience(), again=follow is None
    )
    return sitting, sitting.run()


def _told(sitting: Sitting, who: Participant, reason: str, took: float) -> dict[str, Any]:
    """Return what the command prints of a session."""
    journal = sitting.journal
    return {
        "folder": str(journal.place.folder),
        "participant": who.code,
        "session": who.session,
        "trials": sum(one.start["kind"] != "practice" for one in sitting.state.answered.values()),
        "repeated": sitting.state.repeated,
        "journal": str(journal.place.journal),
        "reason": reason,
        "blocks": len(sitting.state.blocks),
        "tracks": {} if sitting.design.experiment.blind else dict(sitting.course.tracks()),
        "simulated": journal.records[0]["observer"] is not None,
        "elapsed_s": round(took, 3),
    }
