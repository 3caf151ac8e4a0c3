"""Benchmarks of simulations: the loop, a sweep, QUEST+, and simulated participants with their fits.

``loop``
    A tick of the whole loop without a clock, compared with a step of its element. In addition to the step, a tick
    contains the plant in ten substeps, the hand with its tremor, the encoder and its velocities, the envelope, the
    energy ledger, and a row of the trace. The time is computed from the difference of long and short sessions, which
    removes the time to create a session.
``sweep``
    Sessions of a sweep in one process and on all processors, alternately. A task is the unit that ``haptics sweep``
    sends to a worker: a batch of sessions of 2 s over stiffness and damping of model C.
``quest``
    A trial of QUEST+, compared with an implementation by whole NumPy arrays. A trial processes the last answer and
    chooses the next level (`apps.experiment.procedures.quest`): 50 levels, 2400 combinations of threshold, slope and
    lapse, in sessions of 60 trials. The reference computes the entropy of every possible posterior, as in Watson
    (2017); the product computes the expected information of an answer.
``fit``
    Simulated participants with 60 trials of QUEST+ and a fit, as in ``haptics experiment power``. The reference of the
    ratio is the procedure without the fit, measured in alternation.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from apps.bench.outcome import Progress, table
from apps.bench.workload import PERIOD, STEPS, compare, empty_results, measure, own_loop, plainest
from apps.experiment.power import Arm, Study, simulate_people
from apps.experiment.procedures.quest import QuestPlus
from apps.experiment.procedures.settings import QuestSettings
from apps.shared.command import Answer
from apps.shared.workers import workers
from apps.sweep.design import AxisSettings, Job, Sweep, SweepSettings
from apps.sweep.running import simulate_jobs
from devices import create_device
from haptics.clock import Clock
from haptics.device import Causality, Device
from haptics.servo.offline import OfflineJob, run_all

# --- loop ---------------------------------------------------------------------------------------------------------

SHORT, LONG = 0.1, 4.1
"""Durations of the sessions [s]."""

MANY = 8
"""Sessions per slice."""

_LOOP_ROUNDS = 30


def run_loop(progress: Progress) -> Answer:
    """Measure the ticks and the steps."""
    progress(0.0, "model C on the virtual joystick")
    step = own_loop(plainest(Causality.IMPEDANCE), empty_results())
    times = measure([sessions(SHORT), sessions(LONG), step], _LOOP_ROUNDS)
    tick = np.maximum(times[:, 1] - times[:, 0], 0.0) / (MANY * (LONG - SHORT) / PERIOD)
    reference = times[:, 2] / STEPS
    row = {
        "ns_per_tick": float(np.median(tick)) * 1e9,
        "reference_ns_per_step": float(np.median(reference)) * 1e9,
        **compare(tick, reference),
    }
    return Answer({"rows": [row]}, table([("ns/tick", "ns/step", "ratio", "spread"), list(row.values())]))


def sessions(duration: float) -> Callable[[], object]:
    """Return a function that runs `MANY` sessions of model C, each with its own hand, in one call of compiled code."""
    element = plainest(Causality.IMPEDANCE)

    def joystick(seed: int, clock: Clock) -> Device:
        return create_device("virtual-joystick", {"seed": seed}, clock=clock)

    jobs = [OfflineJob(functools.partial(joystick, seed), element, duration) for seed in range(MANY)]
    return lambda: run_all(jobs)


# --- tasks on a pool of workers -----------------------------------------------------------------------------------

_TASK_ROUNDS = 7

Task = Callable[[int], float]
"""Takes the number of the task and returns its working time [s]. It must be picklable."""


@dataclass(frozen=True)
class Speed:
    """Measured speed of tasks on a pool of workers.

    Attributes
    ----------
    working : float
        Working time of a task, alone on the machine [s].
    overhead : float
        Additional time to send a task, start it and return its result [s].
    speedup : float
        Ratio of the serial to the parallel time of one task per worker.
    """

    working: float
    overhead: float
    speedup: float

    def time(self, tasks: float, workers: int) -> float:
        """Return the time of `tasks` on `workers` [s].

        One process submits them sequentially.
        """
        return max(math.ceil(tasks / workers) * (self.working + self.overhead), tasks * self.overhead)


def measure_tasks(executor: Executor, workers: int, task: Task, rounds: int = _TASK_ROUNDS) -> Speed:
    """Measure tasks serially and on all workers, alternately; return medians over all rounds."""
    list(executor.map(task, range(4 * workers)))  # warm-up: every worker compiles the kernels
    working, overhead, ratio = [], [], []
    for _ in range(rounds):
        begun, inside = time.perf_counter(), []
        for number in range(workers):
            inside.append(executor.submit(task, number).result())
        serial = time.perf_counter() - begun
        begun = time.perf_counter()
        list(executor.map(task, range(workers)))
        ratio.append(serial / (time.perf_counter() - begun))
        working.append(sum(inside) / workers)
        overhead.append(max(serial - sum(inside), 0.0) / workers)
    return Speed(float(np.median(working)), float(np.median(overhead)), float(np.median(ratio)))


def in_words(seconds: float) -> str:
    """Format a duration with a suitable unit."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s"


# --- sweep --------------------------------------------------------------------------------------------------------

BATCH = 150
"""Sessions per task, about 0.3 s."""

MAP = 10_000
"""Sessions of a map of 100 x 100."""

SWEEP = Sweep(
    SweepSettings(outcomes=("stable", "buzz")),
    (
        AxisSettings("element.stiffness", start=500.0, stop=50000.0, count=100, scale="log"),
        AxisSettings("element.damping", start=0.5, stop=100.0, count=100, scale="log"),
    ),
    {"session": {"model": "C"}, "device": {"name": "virtual-joystick"}},
)


def run_sweep(progress: Progress) -> Answer:
    """Measure tasks, and extrapolate to a map."""
    count = len(os.sched_getaffinity(0))
    progress(0.0, "one processor")
    alone = float(np.median(measure([functools.partial(simulate_batch, BATCH, 0)], 5))) / BATCH
    progress(0.3, f"{count} processes")
    with workers("processes", count) as (executor, number):
        speed = measure_tasks(executor, number, functools.partial(simulate_batch, BATCH))
    row = {
        "workers": number,
        "cpu_ms_per_session": alone * 1e3,
        "ms_per_session": speed.working / BATCH * 1e3,
        "overhead_ms_per_task": speed.overhead * 1e3,
        "ratio": speed.speedup,
        "map_seconds": MAP / BATCH * (speed.working + speed.overhead) / speed.speedup,
    }
    heading = ("workers", "processor ms/session", "ms/session", "overhead ms/task", "speed-up", "s for 100 x 100")
    words = f"{in_words(MAP * alone)} of processor time, {in_words(row['map_seconds'])} here, without the start"
    return Answer({"rows": [row]}, f"{table([heading, list(row.values())])}\n\n100 x 100 sessions: {words}")


def simulate_batch(batch: int, number: int) -> float:
    """Simulate a `batch` of sessions and return the elapsed time [s]."""
    begun = time.perf_counter()
    points = [{"element.stiffness": 500.0 + 7.0 * k, "element.damping": 2.0} for k in range(batch)]
    results = simulate_jobs(SWEEP, [Job(k, point, number * batch + k) for k, point in enumerate(points)])
    if not all("outcomes" in result for result in results):
        raise RuntimeError(f"a session of the benchmark failed: {results}")
    return time.perf_counter() - begun


# --- QUEST+ -------------------------------------------------------------------------------------------------------

QUEST = QuestSettings(
    minimum=0.01,
    maximum=1.0,
    count=50,
    thresholds=50,
    slopes=(0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6),
    lapses=(0.0, 0.01, 0.02, 0.04, 0.06, 0.08),
)
_GUESS = 0.5

_TRUE_LEVEL = 0.15
"""Level from which the simulated answers are correct."""


def run_quest(progress: Progress) -> Answer:
    """Measure both implementations."""
    progress(0.0, f"{QUEST.count} levels")
    right = QuestPlus(QUEST, _GUESS).right
    times = measure([own_session, array_trial(right)])
    own, reference = times[:, 0] / QUEST.trials, times[:, 1]
    row = {
        "levels": QUEST.count,
        "cells": len(right),
        "us_per_trial": float(np.median(own)) * 1e6,
        "reference_us_per_trial": float(np.median(reference)) * 1e6,
        **compare(own, reference),
    }
    heading = ("levels", "cells", "us/trial", "NumPy us/trial", "ratio", "spread")
    return Answer({"rows": [row]}, table([heading, list(row.values())]))


def own_session() -> None:
    """Run a session from the first trial to the last."""
    quest = QuestPlus(QUEST, _GUESS)
    while not quest.finished:
        level = quest.level()
        quest.add_outcome(level, level >= _TRUE_LEVEL)


def array_trial(right: NDArray[np.float64]) -> Callable[[], int]:
    """Return a function that chooses a level and processes an answer, given probabilities (cells, levels)."""
    posterior = np.full((len(right), 1), 1.0 / len(right))

    def trial() -> int:
        entropy = np.zeros(right.shape[1])
        for likelihood in (right, 1.0 - right):
            joint = likelihood * posterior
            share = joint.sum(axis=0)
            after = joint / share
            entropy -= share * (after * np.log(np.maximum(after, 1e-300))).sum(axis=0)
        chosen = int(np.argmin(entropy))
        likelihood = right[:, chosen : chosen + 1]
        if chosen < right.shape[1] // 2:
            likelihood = 1.0 - likelihood
        posterior[:] = likelihood * posterior / (likelihood * posterior).sum()
        return chosen

    return trial


# --- simulated participants ---------------------------------------------------------------------------------------

PORTION = 20
"""Participants in a task."""

PEOPLE, MILLIONS = 2000, 2_000_000
"""Participants of a typical and of a very large power analysis."""

_WORKERS = (1, 2, 8, 32, 128)

_PROCEDURE = {"kind": "quest+", "trials": 60, "least_trials": 60, "minimum": 0.04, "maximum": 2.0}
STUDY = Study((Arm("2 N", "discrimination", "law.force", 2.0, 1, _PROCEDURE),), {"level": 1}, "weibull", 0.75, 1)


def run_fit(progress: Progress) -> Answer:
    """Measure participants alone and on all processors, and extrapolate to large numbers."""
    progress(0.0, "one process")
    times = measure([functools.partial(simulate_people, STUDY, 0, 1), own_session], 20)
    count = len(os.sched_getaffinity(0))
    progress(0.3, f"{count} processes")
    with workers("processes", count) as (executor, number):
        speed = measure_tasks(executor, number, simulate_portion)
    plan = {str(each): speed.time(MILLIONS / PORTION, each) for each in _WORKERS}
    here = PEOPLE / PORTION * (speed.working + speed.overhead) / speed.speedup
    row = {
        "ms_per_person": speed.working / PORTION * 1e3,
        **compare(times[:, 0], times[:, 1]),
        "overhead_ms_per_task": speed.overhead * 1e3,
        "speedup": speed.speedup,
    }
    heading = ("ms/person", "ratio", "spread", "overhead ms/task", f"speed-up of {number}")
    many = "\n".join(f"  on {each} workers: {in_words(seconds)}" for each, seconds in plan.items())
    text = (
        f"{table([heading, list(row.values())])}\n\n{PEOPLE} people on the {number} workers here: {in_words(here)}\n"
        f"{MILLIONS} people, if all workers were as fast as one here alone:\n{many}"
    )
    return Answer({"rows": [row], "people": PEOPLE, "seconds": here, "two_million_seconds": plan}, text)


def simulate_portion(number: int) -> float:
    """Simulate the participants of a task and return the elapsed time [s]."""
    begun = time.perf_counter()
    found = simulate_people(replace(STUDY, seed=1 + number), 0, PORTION)
    if found.shape[0] != PORTION or not np.isfinite(found).any():
        raise RuntimeError("no threshold was found")
    return time.perf_counter() - begun
