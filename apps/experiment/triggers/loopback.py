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
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from apps.experiment.triggers.ports import SERIAL, SOCKET, TriggerSettings
from apps.experiment.triggers.process import start
from apps.front_ends.front_end import start_process
from apps.front_ends.messages import SessionEnded, SessionStarted
from haptics.clock import WallClock
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

_PATIENCE = 30.0


def receive(connection: Connection[Any, Any], kind: str) -> None:
    """Open the far end, send its address, and send the received codes with their times [ns] at the end."""
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
        ready = contextlib.suppress(BlockingIOError)
        while True:
            # a pause of 50 us, so that the receiver does not occupy a processor
            with ready:
                data = os.read(far, 4096)
                now = time.monotonic_ns()
                codes += data
                times += [now] * len(data)
                if data:
                    continue
            if connection.poll():
                break
            time.sleep(50e-6)
        connection.send((codes, times))


def measure(kind: str, count: int) -> dict[str, Any]:
    """Send `count` codes to a pseudo terminal or a socket, with ticks that the servo's clock paces in this process.

    Parameters
    ----------
    kind : {"pty", "socket"}
        Far end.
    count : int
        Number of codes.

    Returns
    -------
    dict
        ``events``, ``received``, ``logged``, ``in_order``; ``delay_us`` from the start of the tick to the receipt, if
        none is lost; ``lateness_us`` of the ticks. JSON serializable.
    """
    granted = request_real_time()
    with contextlib.ExitStack() as stack:
        memory = SharedFile("trace")
        stack.callback(memory.close)
        trace = Trace.create(memory.path, capacity=4096)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="haptics-triggers-")))
        receiver, process = start_process(receive, (kind,), "haptics trigger receiver")
        stack.callback(process.kill)
        log = folder / "log"
        log.touch()
        port = SERIAL if kind == PTY else SOCKET
        settings = TriggerSettings(port=port, address=receiver.recv(), codes={"block": 0})
        front = start(settings, log, fifo=granted["scheduling"] == "fifo")
        stack.callback(front.close)
        until = time.monotonic() + _PATIENCE
        while b"\n" not in log.read_bytes() and time.monotonic() < until:
            time.sleep(0.01)
        front.send(_started(memory.path))
        due, lateness = _tick(trace, count)
        result: dict[str, Any] = {"events": count, "realtime": granted["scheduling"], "lateness_us": _figures(lateness)}
        front.send(SessionEnded("completed"))
        front.close()
        time.sleep(0.1)
        receiver.send(None)
        codes, times = receiver.recv()
        lines = log.read_text().splitlines()[1:]
        expected = [11, 21] * (count // 2) + [11] * (count % 2)
        result |= {"received": len(codes), "in_order": codes == expected, "logged": len(lines)}
        if codes == expected:
            result["delay_us"] = _figures((np.array(times) - due) * 1e-9)
        return result


def delays(log: Path, received: list[int], times: list[int]) -> dict[str, Any]:
    """Return the numbers of codes in the log and received, and the delays [s] to the receipt if these are the same."""
    lines = [json.loads(line) for line in log.read_text(encoding="ascii").splitlines()[1:]]
    codes, due = [line["code"] for line in lines], [line["due_ns"] for line in lines]
    delay = (np.array(times, float) - np.array(due, float)) * 1e-9 if codes == received else np.zeros(0)
    return {"logged": len(lines), "received": len(received), "delay_s": delay}


def _tick(trace: Trace, count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Append rows in real time; return the starts of the ticks with an event [ns] and the lateness of all [s]."""
    clock, row = WallClock(PERIOD), NEUTRAL.copy()
    due, lateness = np.zeros(count), np.zeros(_FIRST + count * TICKS_PER_EVENT + 10)
    clock.start()
    trace.origin[:] = clock.origin_ns
    for tick in range(len(lateness)):
        late = lateness[tick] = clock.wait(tick)
        number = (tick - _FIRST) // TICKS_PER_EVENT
        begun = 0 <= number < count
        row["tick"], row["time"], row["period_error"] = tick, tick * PERIOD, late
        row["marker"] = _INTERVAL - (number % 2 if begun else 1 if number < 0 else (count - 1) % 2)
        if begun and (tick - _FIRST) % TICKS_PER_EVENT == 0:
            due[number] = clock.origin_ns[0] + 1e9 * (tick * PERIOD + late)
        trace.append(row)
    return due, lateness[_FIRST:]


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
