"""Benchmark ``servo``: wake-up latency of the servo, compared with cyclictest on the same machine.

Slices of several seconds alternate between a session (virtual joystick, model C) and cyclictest, at the same priority
and period. Because the load of a machine changes from minute to minute, neighbouring slices are compared, and the
result is the median of these ratios. If Qt can be loaded, everything is measured twice: with the live view running in a
separate process, and without it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from apps.bench import cyclictest
from apps.bench.outcome import CannotMeasure, Progress, Stop, table
from apps.bench.parallel_view import ENOUGH, Frames, open_views, show_stage, show_view, view_obstacle
from apps.front_ends.messages import SessionEnded
from apps.session.run import Session
from apps.session.service import Service
from apps.settings.config import complete
from apps.shared.command import Answer
from apps.stage.launch import stage_obstacle
from haptics.errors import ConfigurationError
from haptics.recording.certificate import quantiles
from haptics.recording.recording import Recording
from haptics.records import Rows
from haptics.servo.realtime import stolen_time
from haptics.settings import bounded, build, check, choice, documented
from haptics.trace import Ring

DEVICE, MODEL = "virtual-joystick", "C"


WITH_VIEW, WITH_STAGE, WITHOUT_VIEW = "with_view", "with_view_and_stage", "without_view"

_CONDITIONS = {
    "on": (WITH_VIEW,),
    "off": (WITHOUT_VIEW,),
    "both": (WITH_VIEW, WITHOUT_VIEW),
    "stage": (WITH_STAGE, WITHOUT_VIEW),
}
"""Measured conditions; the first one is decisive."""

_WINDOWS = {WITH_VIEW: (show_view,), WITH_STAGE: (show_view, show_stage), WITHOUT_VIEW: ()}

_LONGEST_SLICE, _SHORTEST_SLICE = 10.0, 0.5
_TRIAL = 2.0
"""Length of the warm-up session [s]."""


@documented
@dataclass(frozen=True)
class Turns:
    """Settings of a benchmark with real-time slices."""

    where: ClassVar[str] = "bench"

    duration: float = bounded(80.0, minimum=1.0, maximum=1e5, unit="s", doc="length of all slices together")
    slice: float = bounded(0.0, minimum=0.0, maximum=1e4, unit="s", doc="length of a slice; 0: 10 s, or what fits")
    rate: float = bounded(1000.0, minimum=100.0, maximum=8000.0, unit="Hz", doc="wake-ups in a second")
    scheduling: str = choice(
        "auto", ("auto", "fifo", "other"), doc="scheduling class of what is measured, as of the servo process"
    )
    cpu: int = bounded(-1, minimum=-1, doc="processor that it stays on; -1: any")

    def __post_init__(self) -> None:
        check(self, self.where)
        turns = self.turns
        if not _SHORTEST_SLICE <= self.length <= self.duration / turns * (1 + 1e-9):
            raise ConfigurationError(
                f"{self.where}: {turns} slices of {self.length:g} s in {self.duration:g} s: a slice must be at least "
                f"{_SHORTEST_SLICE:g} s long, and all {turns} must fit into the duration."
            )

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        raise NotImplementedError

    @property
    def length(self) -> float:
        """Length of a slice [s]."""
        return self.slice or min(_LONGEST_SLICE, self.duration / self.turns)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.duration / (self.turns * self.length) * (1 + 1e-9))


@documented
@dataclass(frozen=True)
class Settings(Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench servo"

    view: str = choice(
        "both", tuple(_CONDITIONS), doc="whether a live view runs beside them, or ('stage') the stage as well"
    )

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return 2 * len(_CONDITIONS[self.view])


def run(progress: Progress, **options: Any) -> Answer:
    """Measure both candidates under all conditions in every round, in alternating order."""
    obstacle = view_obstacle()
    settings = build(Settings, {"view": "off" if obstacle else "both", **options}, Settings.where)
    cyclictest.require()
    if obstacle and settings.view != "off":
        raise CannotMeasure(f"{Settings.where}.view = {settings.view!r}: {obstacle}.")
    if settings.view == "stage" and (obstacle := stage_obstacle() or ""):
        raise CannotMeasure(f"{Settings.where}.view = 'stage': {obstacle}.")
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        progress(0.0, "a warm-up session")
        candidates = Candidates(Path(folder), settings, stop)
        trial = candidates.trial()
        priority = int(trial.real_time["priority"])
        command = " ".join(candidates.command(priority))
        conditions: dict[str, Condition] = {name: ([], []) for name in _CONDITIONS[settings.view]}
        total, done = settings.turns * settings.rounds, 0
        for number in range(settings.rounds):
            order = (True, False) if number % 2 == 0 else (False, True)
            for name, (servos, references) in conditions.items():
                with open_views(trial.rows, trial.started, stop, _WINDOWS[name]) as frames:
                    for own in order:
                        who = "servo" if own else cyclictest.NAME
                        progress(done / total, f"{who} {name.replace('_', ' ')}, slice {done + 1} of {total}")
                        if own:
                            servos.append(candidates.servo(frames))
                        else:
                            references.append(candidates.reference(priority, frames))
                        done += 1
    return report(conditions, trial, settings.length, command, f"no live view: {obstacle}" if obstacle else "")


# --- wake-up latency -----------------------------------------------------------------------------------------------

LATE = 1e-3
"""Latency above which a tick counts in ``late_share`` [s]."""

SETTLING = 0.2
"""Initial part of a slice that is ignored [s], while the process around the loop settles."""

QUANTILES = ("p50", "p99", "p999")

_RESOLUTION = 1e-3
"""Lower bound of a reference in ratios [us]: the resolution of the figures."""

Figures = dict[str, float]


def whole_lateness(rows: Rows, period: float) -> NDArray[np.float64]:
    """Return the latency of every tick after its deadline, (n,) [s], without the settling time.

    The row of a tick after skipped deadlines contains the latency after its own deadline. Here the latency is counted
    from the first unserved deadline, so that a stall counts in full, as in cyclictest.

    Parameters
    ----------
    rows : structured array
        All ticks of a run.
    period : float
        Time between two deadlines [s].
    """
    ticks = rows["tick"]
    due = np.concatenate(([0], ticks[:-1] + 1))
    lateness = (ticks - due) * period + rows["period_error"]
    return np.asarray(lateness[due * period >= SETTLING])


def figures(lateness: NDArray[np.float64]) -> Figures:
    """Return ``p50``, ``p99``, ``p999``, ``max`` [us] and ``late_share`` of the latencies, (n,) [s]."""
    share = float(np.mean(lateness > LATE)) if len(lateness) else 0.0
    return {**quantiles(lateness, scale=1e6, p999=True), "late_share": share}


def ratios(own: Figures, reference: Figures, count: int) -> Figures:
    """Return ``ratio_p50``, ``ratio_p99``, ``ratio_p999`` and ``ratio_late_share`` of two slices.

    The ratio of two zeros is 1. Otherwise, a reference of zero is replaced by the smallest observable value: one late
    wake-up in `count`, or a nanosecond.
    """
    found = {f"ratio_{name}": _ratio(own[name], reference[name], _RESOLUTION) for name in QUANTILES}
    return {**found, "ratio_late_share": _ratio(own["late_share"], reference["late_share"], 1.0 / count)}


def _ratio(own: float, reference: float, least: float) -> float:
    return 1.0 if own == reference else round(own / max(reference, least), 6)


def medians(slices: list[dict[str, Any]]) -> Figures:
    """Return the median of each ratio over the slices."""
    names = (*(f"ratio_{name}" for name in QUANTILES), "ratio_late_share")
    return {name: float(np.median([one[name] for one in slices])) for name in names}


# --- slices --------------------------------------------------------------------------------------------------------

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slice:
    """Measurement of one candidate in one slice.

    Attributes
    ----------
    lateness : (n,) float array
        Latency of every wake-up after the settling time [s].
    stolen : float or None
        Time stolen by the hypervisor during the slice [s].
    frames : float or None
        Frame rate of the view [1/s]; None without a view.
    """

    lateness: Floats
    stolen: float | None
    frames: float | None


@dataclass(frozen=True)
class ServoSlice(Slice):
    """Measurement of the servo in one slice.

    Attributes
    ----------
    tick_time : (m,) float array
        Duration of every tick [s].
    summary : dict
        Summary of the session; see the command ``run``.
    startup : float
        Time from the start of the session to its first tick [s].
    numbers : (m,) int array
        Tick numbers.
    """

    tick_time: Floats
    summary: dict[str, Any]
    startup: float
    numbers: NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """Warm-up session, which compiles the kernels and reports the scheduling of the servo.

    Attributes
    ----------
    rows : structured array
        Its ticks.
    started : dict
        Description of the run for a view.
    real_time : dict
        Real-time properties granted by the operating system, in the format of the results.
    startup : float
        Time from the start of the session to its first tick [s].
    """

    rows: Rows
    started: dict[str, Any]
    real_time: dict[str, Any]
    startup: float


Condition = tuple[list[ServoSlice], list[Slice]]
"""Slices of servo and reference under the same condition, in pairs."""

_Window = Callable[[], tuple[float | None, float | None]]


def _window(frames: Frames | None) -> _Window:
    """Begin a measurement; return a function that returns the time stolen meanwhile [s] and the frame rate [1/s]."""
    start, stolen_before, drawn_before = time.monotonic(), stolen_time(), frames() if frames else 0

    def close() -> tuple[float | None, float | None]:
        took, stolen = time.monotonic() - start, stolen_time()
        rate = round((frames() - drawn_before) / took, 1) if frames else None
        return None if stolen is None or stolen_before is None else round(stolen - stolen_before, 3), rate

    return close


class Candidates:
    """Runs the two candidates.

    Parameters
    ----------
    folder : Path
        Folder for recordings and the output of cyclictest, which are deleted.
    settings : Turns
        Length of a slice, wake-up rate, scheduling and processor.
    stop : Stop
        Polled during the runs.
    """

    def __init__(self, folder: Path, settings: Turns, stop: Stop) -> None:
        self._folder, self._settings, self._stop = folder, settings, stop
        self._count = round(settings.length * settings.rate)

    def trial(self) -> Trial:
        """Run a warm-up session."""
        session, summary, startup, _ = self._run(_TRIAL, None, None)
        recording = Recording(Path(summary["recording"]))
        real_time = dict(recording.metadata["real_time"])
        real_time = {"realtime": real_time.pop("scheduling"), **real_time}
        return Trial(np.array(recording.rows), session.started, real_time, startup)

    def servo(self, frames: Frames | None, service: Service | None = None) -> ServoSlice:
        """Run a session, with the front ends of a `service`."""
        _, summary, startup, close = self._run(self._settings.length, frames, service)
        stolen, frame_rate = close()
        recording = Recording(Path(summary["recording"]))
        lateness = whole_lateness(recording.rows, 1.0 / self._settings.rate)
        tick_time, numbers = (np.array(recording.rows[name]) for name in ("tick_time", "tick"))
        shutil.rmtree(recording.folder)
        return ServoSlice(lateness, stolen, frame_rate, tick_time, summary, startup, numbers)

    def _run(
        self, length: float, frames: Frames | None, service: Service | None
    ) -> tuple[Session, dict[str, Any], float, _Window]:
        """Run a session of `length` [s], with front ends in the same way as an application if there is a `service`.

        Return the session, its summary, the time to its first tick [s], and the window that began there.
        """
        given = self._settings
        settings = {"model": MODEL, "rate": given.rate, "duration": length, "record": str(self._folder)}
        servo = {"scheduling": given.scheduling, "cpu": given.cpu}
        session = Session(
            complete({"session": settings, "device": {"name": DEVICE}, "servo": servo}), lambda line: None, quiet=True
        )
        trace, begun = Ring.attach(Path(session.started["trace"])), time.monotonic()
        startup, close = 0.0, _window(frames)

        def attend() -> None:
            nonlocal startup, close
            if service is not None:
                service.run_periodic_tasks()
            self._stop.check()
            if not startup and trace.count:
                startup, close = time.monotonic() - begun, _window(frames)

        if service is None:
            outcome = session.run(attend)
        else:
            service.begin(session)
            outcome = session.run(attend, service.connections)
            service.end(SessionEnded(outcome.reason, outcome.summary, str(outcome.fault or "")))
        if outcome.fault is not None:
            raise outcome.fault
        return session, outcome.summary, startup, close

    def command(self, priority: int) -> list[str]:
        """Return the cyclictest command line.

        `priority` is the FIFO priority of the servo, 0 for SCHED_OTHER.
        """
        return cyclictest.command(1.0 / self._settings.rate, self._count, priority, self._settings.cpu)

    def reference(self, priority: int, frames: Frames | None) -> Slice:
        """Run cyclictest with the FIFO `priority` of the servo, 0 for SCHED_OTHER."""
        output = self._folder / "cyclictest.txt"
        close = _window(frames)
        cyclictest.measure(self.command(priority), output, self._settings.length, self._stop.check)
        stolen, frame_rate = close()
        lateness = cyclictest.lateness(output.read_text(encoding="ascii", errors="replace"), self._count)
        return Slice(lateness[round(SETTLING * self._settings.rate) :], stolen, frame_rate)


# --- report --------------------------------------------------------------------------------------------------------

_COUNTS = ("ticks", "skipped", "lost_ticks", "overruns")

_HEADING = ("", "", "median us", "99 % us", "99.9 % us", "max us", "late of 1000", "frames/s", "stolen s")


def report(conditions: Mapping[str, Condition], trial: Trial, length: float, command: str, remark: str = "") -> Answer:
    """Compute the result of slices of `length` [s].

    Parameters
    ----------
    conditions : mapping
        Name to slices. The figures of the first condition are also at the top level of the result.
    trial : Trial
        Warm-up session.
    length : float
        Length of a slice [s].
    command : str
        Command line of cyclictest.
    remark : str
        Additional remark for the text.
    """
    found = {name: measured(condition) for name, condition in conditions.items()}
    slices = [one for servos, _ in conditions.values() for one in servos]
    result = {
        "device": DEVICE,
        "model": MODEL,
        "rate_hz": slices[0].summary["rate_hz"],
        **next(iter(found.values())),
        **trial.real_time,
        "cyclictest": command,
        "slice_s": length,
        "settling_s": SETTLING,
        "startup_s": round(float(np.median([one.startup for one in slices])), 3),
        "first_startup_s": round(trial.startup, 3),
        "conditions": found,
    }
    doubts = []
    for name, one in found.items():
        if one["lost_ticks"]:
            doubts.append(f"{one['lost_ticks']} ticks {name.replace('_', ' ')} are missing in the recordings.")
        frames = one["view_frames_per_s"]
        if frames is not None and frames < ENOUGH:
            doubts.append(f"the live view was closed, or drew {frames:.1f} frames a second only.")
    return Answer(result, _text(result, remark), error=" ".join(doubts))


def measured(condition: Condition) -> dict[str, Any]:
    """Return the figures over all slices of a condition, the ratios, and the figures of every pair."""
    pairs = []
    servos, references = condition
    for own, other in zip(servos, references, strict=True):
        ours, theirs = figures(own.lateness), figures(other.lateness)
        servo = {
            **ours,
            **{name: own.summary[name] for name in (*_COUNTS, "tick_us", "involuntary_switches")},
            "stolen_s": own.stolen,
            "view_frames_per_s": own.frames,
            "startup_s": round(own.startup, 3),
        }
        pairs.append(
            {
                **ratios(ours, theirs, min(len(own.lateness), len(other.lateness))),
                "servo": servo,
                "reference": {**theirs, "stolen_s": other.stolen, "view_frames_per_s": other.frames},
            }
        )
    reference = figures(np.concatenate([one.lateness for one in references]))
    frames = [one.frames for one in (*servos, *references) if one.frames is not None]
    return {
        **servo_figures(servos, _COUNTS),
        "reference": {**reference, "stolen_s": _total_stolen(references)},
        **medians(pairs),
        "view_frames_per_s": min(frames, default=None),
        "slices": pairs,
    }


def servo_figures(slices: Sequence[ServoSlice], counts: Sequence[str]) -> dict[str, Any]:
    """Return the figures over several slices of the servo, with the sums of `counts` of their summaries."""
    own = figures(np.concatenate([one.lateness for one in slices]))
    share = own.pop("late_share")
    return {
        **{name: sum(one.summary[name] for one in slices) for name in counts},
        "period_error_us": own,
        "tick_us": quantiles(np.concatenate([one.tick_time for one in slices]), scale=1e6, p999=True),
        "late_share": share,
        "stolen_s": _total_stolen(slices),
    }


def _total_stolen(slices: Sequence[Slice]) -> float | None:
    known = [one.stolen for one in slices if one.stolen is not None]
    return round(sum(known), 3) if known else None


def circumstances_text(result: Mapping[str, Any]) -> str:
    """Format the session, its scheduling and the machine."""
    under = result["realtime"] + (f", priority {result['priority']}" if result["priority"] else "")
    return (
        f"{result['device']}, model {result['model']}, {result['rate_hz']:g} Hz; scheduling {under}, processors "
        f"{result['processors']}; {result['machine']}, {result['processor']}"
    )


def _text(result: dict[str, Any], remark: str) -> str:
    conditions, keys = result["conditions"], ("p50", "p99", "p999", "max")
    pairs = len(next(iter(conditions.values()))["slices"])
    rows: list[tuple[Any, ...]] = [_HEADING]
    ticks = []
    for condition, one in conditions.items():
        name, reference, tick = condition.replace("_", " "), one["reference"], one["tick_us"]
        for first, second, late, source in (
            (name, "servo", one["period_error_us"], one),
            ("", "cyclictest", reference, reference),
        ):
            times = (late[key] for key in keys)
            rows.append(
                (first, second, *times, 1e3 * source["late_share"], one["view_frames_per_s"], source["stolen_s"])
            )
        rows.append(
            ("", "ratio", *(one[f"ratio_{key}"] for key in keys[:3]), None, one["ratio_late_share"], None, None)
        )
        ticks.append(
            f"{name}: {one['ticks']} ticks, {one['skipped']} skipped, {one['lost_ticks']} lost; a tick took "
            f"{tick['p50']:.0f} us (median), {tick['p99']:.0f} us (99 %), {tick['max']:.0f} us (max)"
        )
    lines = [
        circumstances_text(result),
        f"slices of {result['slice_s']:g} s, {pairs} for each row, the first {SETTLING:g} s of each left out; ratio: "
        "median over pairs of neighbours; late: by more than 1 ms",
        "",
        table(rows),
        "",
        *ticks,
        f"from start to first tick: {result['startup_s']:.1f} s, the first time {result['first_startup_s']:.1f} s",
    ]
    return "\n".join([*lines, remark] if remark else lines)
