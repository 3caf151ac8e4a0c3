"""Sessions to export: two participants, one of them with recordings of two blocks."""

import numpy as np

from apps.experiment.journal import Journal
from haptics.recording.recorder import Recorder
from haptics.records import NEUTRAL
from haptics.trace import Reader, Trace
from tests.apps.experiment.journal.records import HEADER, begin_block, end, place, run_trial, start

TICKS = 400


def plain_session(out, participant="P01", **header):
    """Level 0.25 (2 of 3 right) and 0.5 (1 of 1) in one condition, 0.25 (1 of 1) in another; more does not count."""
    with Journal.create(place(out, participant), HEADER | header) as journal:
        begin_block(journal)
        run_trial(journal, 1, kind="practice")
        run_trial(journal, 2)
        run_trial(journal, 3, level=0.5)
        run_trial(journal, 4)
        run_trial(journal, 5, answer={"correct": False, "response": "1", "reaction_time_s": 0.1 + 0.2})
        journal.append("trial_start", **start(6))
        journal.append("trial_end", **end(6, 1, "repeat", "too fast, twice", 'said "oh"'))
        begin_block(journal, 2)
        run_trial(journal, 6, 2, block=2, condition='high, "rough"', track=None)
        run_trial(journal, 7, kind="catch-easy", block=2)
        journal.append("end", reason="completed", trials=6, repeated=1)
    return journal.place


def recorded_session(out, participant="P02"):
    where = plain_session(out, participant, observer={"name": "level-1"})
    for block in (1, 2):
        record(where.recording(block), seed=block)
    return where


def rows_of(seed):
    """Rows with any numbers, of which a tick was skipped."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(NEUTRAL, TICKS)
    rows["tick"] = np.delete(np.arange(TICKS + 1), 100)
    rows["time"] = rows["tick"] * 1e-3
    rows["period_error"] = rng.uniform(0.0, 1e-4, TICKS)
    for name in ("position", "velocity", "force", "command", "friction_force"):
        rows[name] = rng.normal(size=(TICKS, 2))
    rows["force"][7] = np.inf, np.nan
    rows["marker"] = 111
    return rows


def record(folder, seed):
    """Make the recording of a block."""
    device = {"name": "virtual-joystick", "identity": "seed 1", "causality": "impedance"}
    trace = Trace.create(folder.parent.parent / f"trace-{seed}", capacity=1024)
    trace.origin[:] = 5_000_000_000, 1_790_000_000_123_456_789
    recorder = Recorder(folder, {"rate_hz": 1000.0, "device": device, "versions": {"haptics": "0.1.0"}})
    recorder.attach(Reader(trace))
    for row in rows_of(seed):
        trace.append(row)
    recorder.drain()
    recorder.close({}, complete=True)
    trace.path.unlink()
