"""Benchmark ``stream``: wake-up latency of the servo with and without streaming its ticks.

Slices of several seconds alternate between a session (virtual joystick, model C) without a stream and the same session
with a stream to a client, which receives and parses every message in a separate process. Because the load of a machine
changes from minute to minute, the slices of a round are compared, and the result is the median of these ratios. Ticks
that the client did not receive are counted.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from apps.bench.live.receiver import Receiver, missing
from apps.bench.live.servo_slices import Candidates
from apps.bench.live.stream_report import Streamed, report
from apps.bench.live.turns import Turns
from apps.bench.outcome import CannotMeasure, Outcome, Progress
from apps.bench.stop import Stop
from apps.session.service import Service
from apps.stream import UDP, WEBSOCKET, open_stream
from haptics.settings import build, choice, documented

TITLE = "punctuality of the servo while its ticks are streamed to a client, as ratios to itself without (only if named)"

OFF = "off"

_TRIAL = 2.0
_KINDS = {UDP: (UDP,), WEBSOCKET: (WEBSOCKET,), "both": (UDP, WEBSOCKET)}


@documented
@dataclass(frozen=True)
class Settings(Turns):
    """Settings of the benchmark."""

    where: ClassVar[str] = "bench stream"

    stream: str = choice("both", tuple(_KINDS), doc="what is streamed in turns with nothing")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Candidates in a round."""
        return (OFF, *_KINDS[self.stream])

    @property
    def turns(self) -> int:
        """Number of slices in a round."""
        return len(self.kinds)


def run(progress: Progress, **options: Any) -> Outcome:
    """Run the benchmark.

    The first candidate changes from round to round.
    """
    settings = build(Settings, options, Settings.where)
    if WEBSOCKET in settings.kinds:
        _require_websockets()
    slices: dict[str, list[Streamed]] = {kind: [] for kind in settings.kinds}
    with Stop() as stop, tempfile.TemporaryDirectory(prefix="haptics-bench-") as folder:
        progress(0.0, "a warm-up session")
        candidates = Candidates(Path(folder), settings.rate, settings.servo, stop)
        trial = candidates.trial(_TRIAL)
        total, done = settings.turns * settings.rounds, 0
        for number in range(settings.rounds):
            first = number % settings.turns
            for kind in (*settings.kinds[first:], *settings.kinds[:first]):
                progress(done / total, f"stream {kind}, slice {done + 1} of {total}")
                slices[kind].append(_slice(candidates, settings.length, kind, stop))
                done += 1
    return report(slices, trial, settings.length)


def _slice(candidates: Candidates, length: float, kind: str, stop: Stop) -> Streamed:
    """Run a session of `length` [s] with a stream, or without one."""
    service = Service(lambda line: None)
    if kind == OFF:
        return Streamed(candidates.servo(length, None, service))
    with Receiver(kind, stop) as client:
        try:
            service.streams.add(open_stream(client.address))
            client.await_ready()
            own = candidates.servo(length, None, service)
        finally:
            service.streams.close()
        received = client.finish()
    return Streamed(own, len(received), *missing(own.numbers, received))


def _require_websockets() -> None:
    try:
        import websockets.sync.client  # noqa: F401
    except ImportError as error:
        raise CannotMeasure(
            "bench stream: needs the package websockets: pip install 'haptics[stream]', or take --stream udp."
        ) from error
