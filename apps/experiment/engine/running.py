"""Sessions from their first to their last trial, by whoever answers them, one or many of them."""

from __future__ import annotations

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
from apps.experiment.engine.offline import OfflineStage
from apps.experiment.engine.opening import Request, begin, take_up
from apps.experiment.engine.presenting import Respondent
from apps.experiment.engine.sitting import Sitting
from apps.experiment.journal import Journal, reserve_slot
from apps.experiment.observers import make_observer
from apps.experiment.procedures import trial_seed
from devices import is_virtual
from haptics.errors import ConfigurationError


def run_session(design: Design, request: Request) -> dict[str, Any]:
    """Run a session; return what the command prints of it."""
    _require_possible(design, request.simulated)
    journal, who = begin(design, request)
    with journal:
        return _sit(design, journal, who, simulated=request.simulated)


def resume_session(folder: Path) -> dict[str, Any]:
    """Go on with a session that was interrupted."""
    design, journal, who = take_up(folder)
    with journal:
        simulated = journal.records[0]["observer"] is not None
        _require_possible(design, simulated)
        journal.append("event", name="resumed", torn_bytes=journal.torn)
        return _sit(design, journal, who, simulated=simulated)


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


def _require_possible(design: Design, simulated: bool) -> None:
    if not simulated:
        raise ConfigurationError(
            "--observer is missing: no screen for a participant can be shown; say --observer simulated."
        )
    if not is_virtual(design.session.device):
        raise ConfigurationError(
            f"device.name = {design.session.device!r} with --observer simulated: must be a virtual device, which an "
            "observer in software can hold."
        )


def _sit(design: Design, journal: Journal, who: Participant, *, simulated: bool) -> dict[str, Any]:
    begun = time.monotonic()

    def respondent(course: Course) -> Respondent:
        seed = trial_seed(who.seed, who.code, 0, 0, 1)
        observer = make_observer(design.tables.get("observer", {}), seed=seed)
        return Simulated(observer, course, needs_rows=observer.needs_rows)

    sitting = Sitting(
        design, journal=journal, who=who, respondent=respondent, stage=OfflineStage, audience=Audience(), again=True
    )
    reason = sitting.run()
    took = time.monotonic() - begun
    return {
        "folder": str(journal.place.folder),
        "participant": who.code,
        "session": who.session,
        "trials": sum(one.start["kind"] != "practice" for one in sitting.state.answered.values()),
        "repeated": sitting.state.repeated,
        "journal": str(journal.place.journal),
        "reason": reason,
        "blocks": len(sitting.state.blocks),
        "tracks": dict(sitting.course.tracks()),
        "simulated": simulated,
        "elapsed_s": round(took, 3),
    }
