"""Measurement of triggers without hardware: from the start of a tick to the receipt of its code by another process."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from apps.experiment.triggers.ports import SERIAL, SOCKET, TriggerSettings
from apps.experiment.triggers.process import start
from apps.front_ends.front_end import ProcessFrontEnd, start_process
from apps.front_ends.messages import SessionEnded, SessionStarted
from haptics.clock import WallClock
from haptics.errors import DeviceFault
from haptics.records import NEUTRAL
from haptics.servo.realtime import request_real_time
from haptics.shared import SharedFile
from haptics.trace import Trace

PTY = "pty"

PERIOD = 1e-3
"""Period of the ticks [s]."""

TICKS_PER_EVENT = 2

_FIRST, _INTERVAL = 200, 111
"""Tick of the first event, and marker of an interval."""

_START = 20.0
"""Time for the process of the triggers to open the output [s]."""

_LAST = 2.0
"""Time for codes that were sent to be received [s]."""

Finish = Callable[[], dict[str, Any]]
"""Function that closes the process of the triggers and returns ``sent`` and ``received``, the codes; ``delay_s``, the
times from the starts of the ticks to the receipt as an array, empty unless the codes are the same."""


@contextlib.contextmanager
def connected(kind: str, log: Path, fifo: bool) -> Iterator[tuple[ProcessFrontEnd, Finish]]:
    """Run the process of the triggers within the block, connected to a receiver; it sends no code for the block.

    Parameters
    ----------
    kind : {"pty", "socket"}
        Output.
    log : Path
        Log of the process, which is created.
    fifo : bool
        Whether the process requests FIFO scheduling.

    Raises
    ------
    DeviceFault
        If the output was not opened, or failed.
    """
    with contextlib.ExitStack() as stack:
        receiver, process = start_process(_receive, (kind,), "haptics trigger receiver")
        stack.callback(process.kill)
        port = SERIAL if kind == PTY else SOCKET
        settings = TriggerSettings(port=port, address=receiver.recv(), codes={"block": 0})
        log.touch()
        front = start(settings, log, fifo)
        stack.callback(front.close)
        until = time.monotonic() + _START
        while b"\n" not in log.read_bytes():
            if time.monotonic() > until:
                raise DeviceFault(f"triggers: the {kind} was not opened within {_START:g} s.")
            time.sleep(0.01)

        def finish() -> dict[str, Any]:
            front.close()
            opened, *sent = (json.loads(line) for line in log.read_text(encoding="ascii").splitlines())
            for record in (opened, *sent[-1:]):
                if "error" in record:
                    raise DeviceFault(record["error"])
            codes = [one["code"] for one in sent]
            receiver.send(len(codes))
            received, times = receiver.recv()
            delay = np.array(times, float) - [one["due_ns"] for one in sent] if received == codes else np.zeros(0)
            return {"sent": codes, "received": received, "delay_s": 1e-9 * delay}

        yield front, finish


def _receive(connection: Connection[Any, Any], kind: str) -> None:
    """Send the address of the output; after the number of codes to expect, the received codes and their times [ns]."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.ExitStack() as stack:
        if kind == PTY:
            far, near = os.openpty()
            stack.callback(os.close, near)
            connection.send(os.ttyname(near))
        else:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            connection.send(f"127.0.0.1:{server.getsockname()[1]}")
            far = server.accept()[0].detach()
        stack.callback(os.close, far)
        os.set_blocking(far, False)
        codes: list[int] = []
        times: list[int] = []
        expected, until = math.inf, math.inf
        while len(codes) < expected and time.monotonic() < until:
            try:
                data = os.read(far, 4096)
            except BlockingIOError:
                data = b""
            if data:
                now = time.monotonic_ns()
                codes += data
                times += [now] * len(data)
                continue
            if connection.poll():
                expected, until = connection.recv(), time.monotonic() + _LAST
            time.sleep(50e-6)  # does not occupy a processor
        connection.send((codes, times))


def measure(kind: str, count: int) -> dict[str, Any]:
    """Send `count` codes to a pseudo terminal or a socket, with ticks that the servo's clock paces in this process.

    Parameters
    ----------
    kind : {"pty", "socket"}
        Output.
    count : int
        Number of codes.

    Returns
    -------
    dict
        ``events``, ``realtime``, ``received``, ``logged``, ``in_order``; ``delay_us`` from the start of the tick to the
        receipt, if none is lost; ``lateness_us`` of the ticks. JSON serializable.
    """
    granted = request_real_time()["scheduling"]
    with contextlib.ExitStack() as stack:
        memory = SharedFile("trace")
        stack.callback(memory.close)
        trace = Trace.create(memory.path, capacity=4096)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="haptics-triggers-")))
        front, finish = stack.enter_context(connected(kind, folder / "log", fifo=granted == "fifo"))
        front.send(_started(memory.path))
        lateness = _tick(trace, count)
        front.send(SessionEnded("completed"))
        found = finish()
    good = found["received"] == found["sent"] == [(11, 21)[k % 2] for k in range(count)]
    return {
        "events": count,
        "realtime": granted,
        "lateness_us": _figures(lateness),
        "received": len(found["received"]),
        "logged": len(found["sent"]),
        "in_order": good,
        **({"delay_us": _figures(found["delay_s"])} if good else {}),
    }


def _tick(trace: Trace, count: int) -> np.ndarray[Any, Any]:
    """Append rows with `count` events in real time; return the lateness of the ticks since the first event [s]."""
    clock, row = WallClock(PERIOD), NEUTRAL.copy()
    lateness = np.zeros(_FIRST + count * TICKS_PER_EVENT + 10)
    clock.start()
    trace.origin[:] = clock.origin_ns
    for tick in range(len(lateness)):
        late = lateness[tick] = clock.wait(tick)
        changes = min(max((tick - _FIRST) // TICKS_PER_EVENT + 1, 0), count)
        row["tick"], row["time"], row["period_error"] = tick, tick * PERIOD, late
        row["marker"] = _INTERVAL - 1 + changes % 2
        trace.append(row)
    return lateness[_FIRST:]


def _figures(seconds: np.ndarray[Any, Any]) -> dict[str, float]:
    ordered = np.sort(seconds) * 1e6
    quantiles = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    found = {name: round(float(ordered[math.ceil(share * len(ordered)) - 1]), 1) for name, share in quantiles.items()}
    return {**found, "sd": round(float(np.std(ordered)), 1)}


def _started(trace: Path) -> SessionStarted:
    workspace = ((-1.0, -1.0), (1.0, 1.0))
    return SessionStarted(
        trace=str(trace),
        recording="",
        device="none",
        model="C",
        causality="impedance",
        rate_hz=1.0 / PERIOD,
        hand="none",
        workspace=workspace,
        parameters=(),
        choices={},
        hands=(),
        mouse=False,
        force_scale=1.0,
    )
