"""Sessions for tests of the report, written through the journal as an engine would: the real procedures and observers.

No servo runs: there are no recordings, and what was asked is all that is known of the stimulus.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from apps.experiment.journal import Journal, SessionFolder
from apps.experiment.observers import make_observer
from apps.experiment.procedures import Tracks, make_procedure, trial_seed
from apps.experiment.trial import TASKS, TrialView

SEED = 11

QUEST = {"kind": "quest+", "minimum": 0.02, "maximum": 3.0, "trials": 30}


def design(task: str = "discrimination", references: tuple[float, ...] = (1.0, 2.0), **tables: Any) -> dict[str, Any]:
    return {
        "experiment": {"name": "weber-friction", "title": "Weber function of friction", "task": task, "seed": SEED},
        "stimulus": {"axis": "law.force"},
        "session": {"model": "C"},
        "law": {"name": "coulomb", "force": 1.0},
        "conditions": [{"name": f"{one:g} N", "reference": one} for one in references],
        "procedure": dict(QUEST),
        "catch": {"easy": 0.1},
        "observer": {"weber": 0.12, "spread": 0.2},
        **tables,
    }


def header(tables: dict[str, Any], simulated: bool = True) -> dict[str, Any]:
    return {
        "experiment": tables["experiment"]["name"],
        "design_sha256": "0" * 64,
        "design": tables,
        "seed": SEED,
        "fields": {} if simulated else {"age_band": "20-29", "handedness": "right", "consent_id": "C17"},
        "observer": dict(tables["observer"]) if simulated else None,
        "device": {"name": "virtual-joystick", "parameter_file_hash": "ab" * 32},
        "versions": {"haptics": "0.1.0"},
        "blind": None,
    }


class _Writer:
    def __init__(self, out: Path, code: str, tables: dict[str, Any], session: int, simulated: bool) -> None:
        self.tables, self.code, self.session = tables, code, session
        place = SessionFolder.new(out, code, session, tables["experiment"]["name"])
        self.journal = Journal.create(place, header(tables, simulated))
        self.observer = make_observer(tables["observer"], seed=trial_seed(SEED, code, 0, 0, 1))
        self.task = str(tables["experiment"]["task"])
        self.trial = 0
        names = [one["name"] for one in tables["conditions"]]
        self.journal.append("block_start", block=1, conditions=names, recording="blocks/block-01", attempt=1)

    def give(self, condition: dict[str, Any], level: float, kind: str = "test", track: str | None = None) -> bool:
        """Run a trial; return whether the answer was right."""
        self.trial += 1
        reference, comparison = float(condition["reference"]), 1 + (self.trial % 4 >= 2)
        alone = TASKS[self.task].intervals == 1
        values = [level if self.task in {"estimation", "adjustment"} else reference + level]
        if not alone:
            values = [reference + level, reference] if comparison == 1 else [reference, reference + level]
        view = TrialView(self.task, "law.force", reference, level, tuple(values), None if alone else comparison)
        rng = np.random.default_rng(trial_seed(SEED, self.code, self.session, 1, self.trial))
        answer = self.observer.answer(view, rng)
        correct = answer.correct(view)
        self.journal.append(
            "trial_start",
            trial=self.trial,
            block=1,
            attempt=1,
            kind=kind,
            condition=condition["name"],
            track=track,
            reference=reference,
            level=level,
            comparison_interval=view.order,
            values=values,
            axis="law.force",
            markers=[100 * self.trial + 11 + k for k in range(len(values))],
        )
        self.journal.append(
            "response",
            trial=self.trial,
            attempt=1,
            response=answer.response,
            correct=correct,
            reaction_time_s=answer.reaction_time,
            tick=None,
            source="observer",
            key=None,
        )
        self.end("ok")
        return bool(correct)

    def end(self, outcome: str, *reasons: str) -> None:
        self.journal.append("trial_end", trial=self.trial, attempt=1, outcome=outcome, reasons=list(reasons))

    def close(self) -> None:
        self.journal.append("end", reason="completed", trials=self.trial, repeated=0)
        self.journal.close()


def write_session(
    out: Path, code: str = "P01", tables: dict[str, Any] | None = None, session: int = 1, simulated: bool = True
) -> Path:
    """Write a whole session; return its folder."""
    tables = tables or design()
    writer = _Writer(out, code, tables, session, simulated)
    conditions, guess = tables["conditions"], TASKS[writer.task].guess or 0.0
    procedures, labels = [], []
    for condition in conditions:
        for number in range(condition.get("tracks", 1)):
            table = {**tables["procedure"], **condition.get("procedure", {})}
            seed = trial_seed(SEED, code, session, 0, len(procedures))
            procedures.append(make_procedure(table, guess=guess, seed=seed))
            labels.append((condition, f"{condition['name']}/{number + 1}"))
    tracks, catches = Tracks(procedures, trial_seed(SEED, code, session, 0, 99)), tables["catch"]
    done = 0
    while not tracks.finished:
        done += 1
        index, level = tracks.next()
        condition, label = labels[index]
        tracks.take(index, level, writer.give(condition, level, track=label))
        if catches.get("easy") and done % round(1.0 / catches["easy"]) == 0:
            writer.give(condition, condition["reference"] or 10.0 * level, "catch-easy")
        if catches.get("null") and done % round(1.0 / catches["null"]) == 1:
            writer.give(condition, 0.0, "catch-null")
    writer.close()
    return writer.journal.place.folder
