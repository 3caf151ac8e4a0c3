"""Benchmark ``triggers``: delay of the codes of experiments, and the servo's punctuality with and without them.

Slices alternate between a session (virtual joystick, model C) and the same session whose intervals are announced to a
pseudo terminal, which another process reads. A thread changes the marker of the rows as soon as the last change is in
the trace, so that there are several hundred codes per second. The received codes are compared with those changes.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from apps.bench import servo
from apps.bench.outcome import Progress, Stop, table
from apps.experiment.triggers.loopback import PTY, connected
from apps.session.run import Session
from apps.session.service import Service
from apps.shared.command import Answer
from haptics.settings import build, documented

_SHORTEST = 1e-3
"""Least time between two codes [s]."""

_MARKERS = 110, 111
"""Marker between the intervals, and of an interval."""

_CODES = 21, 11
"""Codes of the changes to these markers."""

_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


@documented
@dataclass(frozen=True)
class Settings(servo.Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench triggers"

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return 2


class _Marking(Service):
    """Service of a session whose marker changes continually."""

    def __init__(self) -> None:
        super().__init__(lambda line: None)
        self.changes = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, session: Session) -> None:
        """Serve a run and change its marker."""
        super().begin(session)
        self._thread = threading.Thread(target=self._alternate, args=(session,))
        self._thread.start()

    def end(self, message: Any) -> None:
        """Stop the changes before the end is announced."""
        self.stop_changes()
        super().end(message)

    def stop_changes(self) -> None:
        """Stop the changes, also after an interruption, in which no end is announced."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _alternate(self, session: Session) -> None:
        trace = session.servo.trace
        while not self._over.wait(_SHORTEST):
            count = trace.count
            if not count:
                continue
            marker = _MARKERS[(self.changes + 1) % 2]
            session.mark(marker)
            while trace.slots["marker"][(trace.count - 1) % len(trace.slots)] != marker:
                if self._over.wait(2e-4):
                    return  # the run ended before a tick took the change
            self.changes += 1


def run(progress: Progress, **options: Any) -> Answer:
    """Run the benchmark."""
    settings = build(Settings, options, Settings.where)
    without: list[servo.ServoSlice] = []
    beside: list[servo.ServoSlice] = []
    codes: list[dict[str, Any]] = []
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        progress(0.0, "a warm-up session")
        candidates = servo.Candidates(Path(folder), settings, stop)
        trial = candidates.trial()
        for number in range(settings.rounds):
            for sends in (False, True) if number % 2 else (True, False):
                progress(
                    (len(without) + len(beside)) / (2 * settings.rounds), "with codes" if sends else "without codes"
                )
                if sends:
                    own, found = _slice(candidates, Path(folder) / f"log{number}", trial.real_time["realtime"])
                    beside.append(own)
                    codes.append(found)
                else:
                    without.append(candidates.servo(None, Service(lambda line: None)))
    return report(without, beside, codes, trial, settings.length)


def _slice(candidates: servo.Candidates, log: Path, realtime: str) -> tuple[servo.ServoSlice, dict[str, Any]]:
    """Run a session with codes; return its slice, and the number, order and delays of the codes."""
    service = _Marking()
    with connected(PTY, log, fifo=realtime == "fifo") as (front, finish):
        service.streams.add(front)
        try:
            own = candidates.servo(None, service)
        finally:
            service.stop_changes()
        found = finish()
    sent = found["sent"]
    expected = [_CODES[(k + 1) % 2] for k in range(len(sent))]
    in_order = found["received"] == sent == expected and len(sent) in (service.changes, service.changes + 1)
    return own, {
        "changes": len(sent) if in_order else service.changes,
        "received": len(found["received"]),
        "in_order": in_order,
        "delay_s": found["delay_s"],
    }


def report(
    without: Sequence[servo.ServoSlice],
    beside: Sequence[servo.ServoSlice],
    codes: Sequence[dict[str, Any]],
    trial: servo.Trial,
    length: float,
) -> Answer:
    """Compute the result.

    Parameters
    ----------
    without, beside : sequence of ServoSlice
        Slices without and with codes, round by round.
    codes : sequence of dict
        Codes of the latter.
    trial : Trial
        Warm-up session.
    length : float
        Length of a slice [s].
    """
    rounds = []
    for one, other in zip(beside, without, strict=True):
        count = min(len(one.lateness), len(other.lateness))
        rounds.append(servo.ratios(servo.figures(one.lateness), servo.figures(other.lateness), count))
    delay = np.concatenate([one["delay_s"] for one in codes]) * 1e6
    counts = ("ticks", "skipped", "lost_ticks")
    result: dict[str, Any] = {
        "device": servo.DEVICE,
        "model": servo.MODEL,
        "rate_hz": without[0].summary["rate_hz"],
        **trial.real_time,
        "slice_s": length,
        "rounds": len(rounds),
        **servo.medians(rounds),
        "codes": sum(one["changes"] for one in codes),
        "received": sum(one["received"] for one in codes),
        "in_order": all(one["in_order"] for one in codes),
        "delay_us": {
            **{name: round(float(np.quantile(delay, share)), 1) for name, share in _QUANTILES.items()},
            "sd": round(float(delay.std()), 1),
        }
        if delay.size
        else None,
        "without": servo.servo_figures(without, counts),
        "beside": servo.servo_figures(beside, counts),
    }
    rows: list[tuple[Any, ...]] = [("servo", "median us", "99 % us", "99.9 % us", "late of 1000", "ticks")]
    for name in ("without", "beside"):
        own = result[name]
        times = (own["period_error_us"][key] for key in servo.QUANTILES)
        rows.append((f"{name} codes", *times, 1e3 * own["late_share"], own["ticks"]))
    rows.append(("ratio", *(result[f"ratio_{key}"] for key in servo.QUANTILES), result["ratio_late_share"], None))
    delays = "-"
    if delay.size:
        delays = "median {p50:.0f}, 99 % {p99:.0f}, max {max:.0f}, standard deviation {sd:.0f} us".format(
            **result["delay_us"]
        )
    text = (
        f"{servo.circumstances_text(result)}\nslices of {length:g} s, {len(rounds)} of each kind; ratio: median over "
        f"rounds\n\n{table(rows)}\n\n{result['received']} of {result['codes']} codes received, "
        f"{'all in order' if result['in_order'] else 'NOT in order'}; delay from the start of the tick to the receipt: "
        f"{delays}"
    )
    return Answer(result, text, error="" if result["in_order"] else "codes were lost or not in order.")
