"""Benchmark ``soak``: a long session, by default one hour, with checks at the end.

Every deadline must be served or counted as skipped, the recording must contain all ticks, the memory of both processes
must not have grown since the warm-up, and a replay of the whole recording must give the same bits.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from apps.bench.outcome import Progress, Stop, table_of
from apps.session.run import Session
from apps.settings.config import complete
from apps.shared.command import Answer
from haptics.errors import ConfigurationError, DeviceFault, RecordingError
from haptics.recording.checks import INCOMPLETE
from haptics.recording.recording import ORIGIN, Recording
from haptics.recording.replay import verify
from haptics.records import columns_with
from haptics.servo.realtime import stolen_time
from haptics.settings import bounded, build, check, documented, string
from haptics.trace import Ring

FLAT = 8192.0
"""Maximum memory growth after the warm-up [KiB]. It exceeds the fluctuations of allocators, and is below a leak of
three bytes per tick in an hour.
"""

LONGEST_END = 0.3
"""Limit of the time from the last tick to the certificate [s]."""

_SERVO = "haptics servo"
_SPARE = 1.1
"""Required disk space relative to the size of the recording."""


@documented
@dataclass(frozen=True)
class Settings:
    """Settings of a benchmark with long recordings."""

    where: ClassVar[str] = "bench soak"

    duration: float = bounded(3600.0, minimum=1.0, maximum=1e6, unit="s", doc="length of the session")
    rate: float = bounded(1000.0, minimum=100.0, maximum=8000.0, unit="Hz", doc="servo rate")
    device: str = string("virtual-joystick", allowed="the name of a device", doc="device, as for haptics run")
    model: str = string("", allowed="the name of a model", doc="model, as for haptics run")
    record: str = string(
        "",
        allowed="a folder",
        doc="folder in which the recording is kept; if empty it is kept only if something was wrong",
    )

    def __post_init__(self) -> None:
        check(self, self.where)


def run(progress: Progress, **options: Any) -> Answer:
    """Run the session and check it."""
    settings = build(Settings, options, Settings.where)
    with Stop() as stop, contextlib.ExitStack() as cleaning:
        folder = Path(settings.record or tempfile.mkdtemp(prefix="haptics-bench-"))
        if not settings.record:
            cleaning.callback(shutil.rmtree, folder)
        session_table = {name: getattr(settings, name) for name in ("model", "rate", "duration")}
        config = complete({"session": {**session_table, "record": str(folder)}, "device": {"name": settings.device}})
        folder.mkdir(parents=True, exist_ok=True)
        needed = _SPARE * settings.duration * settings.rate * columns_with(config.spec.channels).itemsize
        if shutil.disk_usage(folder).free < needed:
            raise ConfigurationError(
                f"no room in {folder} for a recording of {needed / 1e6:.0f} MB: name another folder with --record."
            )
        progress(0.0, f"a session of {settings.duration:g} s")
        session = Session(config, lambda line: None, quiet=True)
        attendant = _Attendant(session, stop)
        outcome = session.run(attendant)
        ended, peak = time.monotonic(), _peak_memory()
        recording = Path(outcome.summary["recording"])
        if outcome.fault is not None:
            cleaning.pop_all()
            raise DeviceFault(f"{outcome.fault} Recording: {recording}") from outcome.fault
        progress(0.9, f"computing {outcome.summary['ticks']} ticks once more")
        with stop.at_once():
            replay = _replayed(recording)
        result = {
            **{name: value for name, value in outcome.summary.items() if name not in {"picture", "recording"}},
            "duration_s": settings.duration,
            "expected_ticks": round(settings.duration * settings.rate),
            "memory": {name: watch.as_dict() for name, watch in attendant.watches.items()},
            "replay": replay,
            "recording_bytes": sum(path.stat().st_size for path in recording.iterdir() if path.is_file()),
            "stolen_s": attendant.stolen,
            "peak_memory_mib": _peak_memory(),
            "end_s": _time_since_last_tick(recording, ended),
            "session_peak_memory_mib": peak,
        }
        result["failures"] = failures(result)
        if result["failures"]:
            cleaning.pop_all()
        result["recording"] = str(recording) if settings.record or result["failures"] else None
    return Answer(result, _text(result), error=" ".join(result["failures"]))


class _Attendant:
    """Callback of the session.

    It monitors the memory of both processes from the first tick on.
    """

    def __init__(self, session: Session, stop: Stop) -> None:
        self._trace = Ring.attach(Path(session.started["trace"]))
        self._duration, self._stop = float(session.config.session.duration or 0.0), stop
        self._begun = 0.0
        self._stolen: float | None = None
        self.watches: dict[str, Watch] = {}

    def __call__(self) -> None:
        self._stop.check()
        if self.watches:
            for watch in self.watches.values():
                watch.at(time.monotonic() - self._begun)
        elif self._trace.count:
            self._begun, self._stolen = time.monotonic(), stolen_time()
            servo = next(process for process in multiprocessing.active_children() if process.name == _SERVO)
            pids = {"application": os.getpid(), "servo": servo.pid or 0}
            self.watches = {name: Watch(pid, self._duration) for name, pid in pids.items()}

    @property
    def stolen(self) -> float | None:
        """Time stolen by the hypervisor since the first tick [s]."""
        now = stolen_time()
        return None if now is None or self._stolen is None else round(now - self._stolen, 3)


def _replayed(recording: Path) -> dict[str, Any]:
    """Replay a recording and return ``ticks``, ``mismatches`` and the ``error`` that prevented it."""
    try:
        found = verify(Recording(recording))
    except RecordingError as error:
        return {"ticks": 0, "mismatches": 0, "error": str(error)}
    incomplete = [finding.words for finding in found.findings if finding.verdict == INCOMPLETE]
    return {"ticks": found.ticks, "mismatches": found.mismatches, "error": incomplete[0] if incomplete else None}


def _peak_memory() -> float:
    """Return the peak resident memory of this process [MiB]."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0, 1)


def _time_since_last_tick(recording: Path, ended: float) -> float | None:
    """Return the time from the last tick to the certificate [s], or None without ticks.

    Parameters
    ----------
    recording : Path
        The recording.
    ended : float
        Monotonic time at which the certificate was complete [s].
    """
    found = Recording(recording)
    origin = found.metadata.get(ORIGIN)
    if not len(found) or origin is None:
        return None
    (last,) = found.read(len(found) - 1, columns=("time", "period_error"))
    return round(ended - (1e-9 * float(origin) + float(last["time"] + last["period_error"])), 3)


def failures(result: dict[str, Any]) -> list[str]:
    """Return a message for each violated requirement in the result of a soak."""
    found = []
    served, expected = result["ticks"] + result["skipped"], result["expected_ticks"]
    if abs(served - expected) > 1:
        found.append(f"{served} deadlines were served or skipped, not {expected}.")
    if (result.get("end_s") or 0.0) > LONGEST_END:
        found.append(f"the session was complete {result['end_s']:g} s after its last tick, not {LONGEST_END:g} s.")
    if result["lost_ticks"]:
        found.append(f"{result['lost_ticks']} ticks are missing in the recording.")
    for name, memory in result["memory"].items():
        if memory.get("growth_kib", 0.0) > FLAT:
            found.append(f"the {name} has {memory['growth_kib']} KiB more in use at the end than after its warm-up.")
    replay = result["replay"]
    if replay["error"]:
        found.append(replay["error"])
    elif replay["mismatches"] or replay["ticks"] != result["ticks"]:
        found.append(f"{replay['mismatches']} of {replay['ticks']} ticks differ when they are computed again.")
    return found


_MEMORY = {
    "name": "memory",
    "first_kib": "after warm-up KiB",
    "last_kib": "at the end KiB",
    "slope_kib_per_min": "slope KiB/min",
}


def _text(result: dict[str, Any]) -> str:
    replay, period, tick = result["replay"], result["period_error_us"], result["tick_us"]
    served = result["ticks"] + result["skipped"]
    return "\n".join(
        [
            f"{result['device']}, model {result['model']}, {result['rate_hz']:g} Hz, {result['duration_s']:g} s; "
            f"scheduling {result['realtime']}",
            f"deadlines     {result['ticks']} served + {result['skipped']} skipped = {served} of "
            f"{result['expected_ticks']}; {result['lost_ticks']} ticks lost, {result['overruns']} late",
            f"replay        {replay['ticks']} ticks computed again, {replay['mismatches']} differ",
            f"recording     {result['recording_bytes'] / 1e6:.1f} MB, " + (result.get("recording") or "not kept"),
            f"period error  median {period['p50']:.0f}, 99.9 % {period['p999']:.0f}, max {period['max']:.0f} us; "
            f"tick: median {tick['p50']:.0f}, 99 % {tick['p99']:.0f} us; {result['stolen_s']} s stolen",
            f"the end       complete {result['end_s']} s after the last tick; at most "
            f"{result['session_peak_memory_mib']:.0f} MiB in use until then",
            "",
            table_of(
                _MEMORY, [{**dict.fromkeys(_MEMORY), "name": name, **one} for name, one in result["memory"].items()]
            ),
        ]
    )


# --- memory --------------------------------------------------------------------------------------------------------

_FILL_TIME = 30.0
"""Time after which the ring buffers of a run at 1 kHz have been filled once, so that all pages are in use [s]."""

_KIB = 1024.0


def resident_memory(pid: int) -> int | None:
    """Return the resident memory of a process [bytes].

    Return None if the process has ended or the system does not provide the value.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Periodic samples of the memory usage of a process.

    Parameters
    ----------
    pid : int
        Process.
    duration : float
        Planned duration of the run [s]. The warm-up takes a fifth of it, at most 30 s.
    every : float
        Time between two samples [s]; shorter in a short run.
    memory : callable
        Takes the process and returns its memory [bytes] or None.
    """

    def __init__(
        self, pid: int, duration: float, every: float = 10.0, memory: Callable[[int], int | None] = resident_memory
    ) -> None:
        self._pid = pid
        self._memory = memory
        self._every = min(every, duration / 20.0)
        self._next = min(_FILL_TIME, duration / 5.0)
        self._samples: list[tuple[float, int]] = []

    def at(self, time: float) -> None:
        """Take a sample if it is due at `time` since the start of the run [s]."""
        if time < self._next:
            return
        self._next = time + self._every
        memory = self._memory(self._pid)
        if memory is not None:
            self._samples.append((time, memory))

    @property
    def growth(self) -> float | None:
        """Growth of the memory from the end of the warm-up to the last sample [KiB]; None without two samples."""
        if len(self._samples) < 2:
            return None
        return (self._samples[-1][1] - self._samples[0][1]) / _KIB

    def as_dict(self) -> dict[str, Any]:
        """Return the growth of the memory, its slope, and the number of samples.

        The keys are ``first_kib``, ``last_kib``, ``growth_kib``, ``slope_kib_per_min`` and ``samples``; only
        ``samples`` without two samples.
        """
        if self.growth is None:
            return {"samples": len(self._samples)}
        times, sizes = np.array(self._samples).T
        return {
            "first_kib": round(sizes[0] / _KIB),
            "last_kib": round(sizes[-1] / _KIB),
            "growth_kib": round(self.growth),
            "slope_kib_per_min": round(float(np.polyfit(times / 60.0, sizes / _KIB, 1)[0]), 3),
            "samples": len(sizes),
        }
