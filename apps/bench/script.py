"""Benchmark ``script``: the servo while a script controls it, blocks, computes, is stopped, fails, or is killed.

Slices of a session without a script (``haptics run``) alternate with slices of the same session opened by a script,
each in separate processes. All figures come from the recordings. The ratio of a round compares its slices, and the
result is the median of these ratios. Two further measurements follow: the time from the end of a script to the safe
output of the device, and the time from a call of `configure` to the first tick with the change, for random changes of
law, element, model and scene, whose recording is replayed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from apps.bench import servo
from apps.bench.outcome import CannotMeasure, Progress, Stop, table
from apps.shared.command import Answer
from apps.verification import examine
from haptics.errors import RecordingError
from haptics.recording.recording import ORIGIN, Recording
from haptics.settings import bounded, build, documented

NONE = "none"
BUSY = ("waits", "blocks", "computes", "stopped")
"""What a script does during its session: wait, sleep, run Python code all the time, or be stopped by SIGSTOP."""

ENDINGS = ("raises", "killed")
"""How a script ends whose run must then end with the safe output."""

CHANGES_PER_SECOND = 20
"""Number of random changes for every second of a slice."""

_PATIENCE = 60.0
_BEFORE_END = 0.5
"""Length of a run before its script fails or is killed [s]."""


@documented
@dataclass(frozen=True)
class Settings(servo.Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench script"

    changes: int = bounded(1000, minimum=1, maximum=100_000, doc="number of random changes of the settings")

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return 1 + len(BUSY)


def run(progress: Progress, **options: Any) -> Answer:
    """Run the benchmark. The first candidate changes from round to round.

    Raises
    ------
    CannotMeasure
        If a script cannot open a session here.
    """
    settings = build(Settings, options, Settings.where)
    candidates = (NONE, *BUSY)
    slices: dict[str, list[dict[str, Any]]] = {kind: [] for kind in candidates}
    delays: dict[str, list[float]] = {kind: [] for kind in ENDINGS}
    total, done = settings.rounds * (len(candidates) + len(ENDINGS)) + 1, 0
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        bench = _Bench(Path(folder), settings, stop)
        for number in range(settings.rounds):
            first = number % len(candidates)
            for kind in (*candidates[first:], *candidates[:first]):
                progress(done / total, f"{kind}, slice {done + 1}")
                slices[kind].append(bench.slice(kind))
                done += 1
            for kind in ENDINGS:
                progress(done / total, f"a script that {'raises' if kind == 'raises' else 'is killed'}")
                delays[kind].append(bench.end(kind))
                done += 1
        progress(done / total, f"{settings.changes} changes")
        changes = bench.change(settings.changes)
    return _report(settings, slices, delays, changes)


class _Bench:
    """The sessions of the benchmark, each with the folder of its recording."""

    def __init__(self, folder: Path, settings: Settings, stop: Stop) -> None:
        self._folder, self._stop, self._length = folder, stop, settings.length
        self._errors = folder / "errors.txt"
        self._settings = {
            "session.rate": settings.rate,
            "servo.scheduling": settings.scheduling,
            "servo.cpu": settings.cpu,
        }

    def slice(self, kind: str) -> dict[str, Any]:
        """Run a session, and return its lateness figures with the numbers of ticks and of skipped ones."""
        with self._session(kind) as process:
            if kind == "stopped":
                json.loads(self._line(process))
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(0.8 * self._length)
                os.kill(process.pid, signal.SIGCONT)
            self._await_end(process)
        recording = self._recording()
        lateness = servo.whole_lateness(recording.rows, 1.0 / recording.metadata["rate_hz"])
        certificate = recording.metadata["certificate"]
        return {**servo.figures(lateness), "ticks": len(recording), "skipped": certificate["skipped"]}

    def end(self, kind: str) -> float:
        """Return the time from the end of a script to the safe output [s]."""
        with self._session(kind) as process:
            at = json.loads(self._line(process))
            if kind == "killed":
                time.sleep(_BEFORE_END)
                at = time.monotonic_ns()
                process.kill()
            self._await_end(process)
        end = self._recording().events[-1]
        return 1e-9 * float(end["safe_output_monotonic_ns"] - at)

    def change(self, count: int) -> dict[str, Any]:
        """Change the settings at random; return the delays until they hold, and the mismatches of the replay."""
        with self._session("changes", str(count)) as process:
            calls = json.loads(self._line(process))
            self._await_end(process)
        recording = self._recording()
        rows = recording.rows
        begin = 1e-9 * float(recording.metadata[ORIGIN]) + rows["time"] + rows["period_error"]
        place = np.searchsorted(rows["tick"], [tick for _, tick in calls])
        delays = begin[place] - np.array([at for at, _ in calls])
        version = rows["settings_version"]
        wrong = int(np.count_nonzero(version[place] != np.arange(1, count + 1)) + np.count_nonzero(delays < 0.0))
        found = examine(recording)
        return {
            "changes": count,
            "ticks": len(rows),
            "mismatches": found.mismatches,
            "verdict": str(found.verdict),
            "wrong_ticks": wrong,
            "delay_ms": {
                name: round(1e3 * float(np.percentile(delays, share)), 3)
                for name, share in (("p50", 50), ("p99", 99), ("max", 100))
            },
        }

    @contextmanager
    def _session(self, kind: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run a session, without a script if `kind` is `NONE`; its process is killed at the end of the block."""
        self._place = Path(tempfile.mkdtemp(dir=self._folder))
        if kind == NONE:
            settings = [word for key, value in self._settings.items() for word in ("--set", f"{key}={value}")]
            words = [sys.executable, "-m", "apps", "run", "--device", servo.DEVICE, "--model", servo.MODEL]
            words += ["--headless", "--duration", str(self._length), "--record", str(self._place), *settings]
        else:
            order = {"kind": kind, "folder": str(self._place), "length": self._length, "settings": self._settings}
            words = [sys.executable, "-m", "apps.bench.script", json.dumps(order), *arguments]
        with (
            self._errors.open("w") as errors,
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def _await_end(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            self._stop.check()
            time.sleep(0.05)

    def _line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            said = self._errors.read_text().strip() or "it ended without a message"
            raise CannotMeasure(f"bench script: the script failed: {said.splitlines()[-1]}")
        return line

    def _recording(self) -> Recording:
        """Return the recording of the last session, once it is complete."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            self._stop.check()
            with suppress(RecordingError, StopIteration):
                recording = Recording(next(self._place.iterdir()))
                if recording.metadata["state"] != "running":
                    return recording
            time.sleep(0.05)
        raise CannotMeasure("bench script: a session has left no complete recording.")


_FIGURES = ("p50", "p99", "p999", "late_share")


def _report(
    settings: Settings,
    slices: dict[str, list[dict[str, Any]]],
    delays: dict[str, list[float]],
    changes: dict[str, Any],
) -> Answer:
    """Compute the result."""

    def sums(kind: str) -> dict[str, Any]:
        found = slices[kind]
        medians = {name: float(np.median([one[name] for one in found])) for name in _FIGURES}
        return {**medians, **{name: sum(one[name] for one in found) for name in ("ticks", "skipped")}}

    scripts: dict[str, dict[str, Any]] = {
        kind: {
            **sums(kind),
            **servo.medians(
                [servo.ratios(own, other, own["ticks"]) for own, other in zip(slices[kind], slices[NONE], strict=True)]
            ),
        }
        for kind in BUSY
    }
    ends = {
        kind: {"count": len(found), "p50_ms": 1e3 * float(np.median(found)), "max_ms": 1e3 * max(found)}
        for kind, found in delays.items()
    }
    result: dict[str, Any] = {
        "device": servo.DEVICE,
        "model": servo.MODEL,
        "slice_s": settings.length,
        "rounds": settings.rounds,
        "without": sums(NONE),
        "scripts": scripts,
        "ends": ends,
        "changes": changes,
    }
    rows: list[Sequence[Any]] = [("script", "median us", "99 % us", "99.9 % us", "late of 1000", "ticks", "skipped")]
    for kind, one in ((NONE, result["without"]), *scripts.items()):
        late = 1e3 * one["late_share"]
        rows.append((kind, one["p50"], one["p99"], one["p999"], late, one["ticks"], one["skipped"]))
        if kind != NONE:
            ratios = (one[f"ratio_{name}"] for name in _FIGURES)
            rows.append(("ratio", *ratios, None, None))
    ends_text = ", ".join(f"{kind} {one['p50_ms']:.1f} (at most {one['max_ms']:.1f})" for kind, one in ends.items())
    delay = changes["delay_ms"]
    text = "\n".join(
        [
            f"slices of {settings.length:g} s, {settings.rounds} of each kind, the first {servo.SETTLING:g} s of each "
            "left out; ratio: median over rounds",
            "",
            table(rows),
            "",
            f"safe output [ms] after the end of a script: {ends_text}",
            f"{changes['changes']} random changes: from the call to the tick median {delay['p50']:.1f}, 99 % "
            f"{delay['p99']:.1f} ms; {changes['mismatches']} of {changes['ticks']} ticks differ when they are computed "
            f"again, {changes['wrong_ticks']} changes in another tick than returned",
        ]
    )
    doubts = []
    if changes["mismatches"] or changes["wrong_ticks"]:
        doubts.append("a change did not hold from the tick that was returned.")
    return Answer(result, text, error=" ".join(doubts))


# --- process of the script --------------------------------------------------------------------------------------------


def _random_change(random: np.random.Generator) -> dict[str, Any]:
    """Return random arguments of `configure`."""
    laws: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: {"name": "coulomb", "force": random.uniform(0.2, 5.0)},
        lambda: {"name": "coulomb-viscous", "force": random.uniform(0.2, 5.0), "viscosity": random.uniform(0.0, 5.0)},
        lambda: {
            "name": "stribeck",
            "static_force": random.uniform(2.0, 5.0),
            "kinetic_force": random.uniform(0.2, 2.0),
        },
    )
    changes: tuple[Callable[[], dict[str, Any]], ...] = (
        lambda: {"law": laws[random.integers(len(laws))]()},
        lambda: {"element": {"stiffness": random.uniform(1e3, 6e3)}},
        lambda: {"model": ("B", "C")[random.integers(2)]},
        lambda: {"scene": ("", "border", "ice-wood-rubber")[random.integers(3)]},
    )
    return changes[random.choice(len(changes), p=(0.5, 0.3, 0.1, 0.1))]()


def _report_line(value: Any) -> None:
    """Send a value to the benchmark."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main(order: dict[str, Any], count: int = 0) -> None:
    """Open the session of `order` and behave as its kind says."""
    import haptics

    kind, length = order["kind"], order["length"]
    duration = None if kind in ("changes", *ENDINGS) else length
    session = haptics.open_session(
        servo.DEVICE, model=servo.MODEL, duration=duration, record=order["folder"], settings=order["settings"]
    )
    if kind == "changes":
        random = np.random.default_rng(1)
        calls: list[tuple[float, int]] = []
        while len(calls) < count:
            pause = random.exponential(1.0 / CHANGES_PER_SECOND)
            session.wait(max(pause, 1e-3))
            change = _random_change(random)
            at = time.monotonic()
            with suppress(haptics.ConfigurationError):  # such as a stiffness that model B does not have
                calls.append((at, session.configure(**change)))
        session.wait(0.2)
        session.close()
        _report_line(calls)
        return
    if kind == "raises":
        session.wait(_BEFORE_END)
        _report_line(time.monotonic_ns())
        raise RuntimeError("the script fails")
    _report_line(time.monotonic_ns())
    until = time.monotonic() + length
    if kind == "blocks":
        time.sleep(length)
    elif kind == "computes":
        while time.monotonic() < until:
            sum(number * number for number in range(10_000))
    elif kind in ("stopped", "killed"):
        time.sleep(_PATIENCE if kind == "killed" else 0.1)
    while session.status == "running":
        session.wait(0.1)
    session.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *map(int, sys.argv[2:]))
