"""Process that loads and compiles laws and computes their curves, separately from the window.

A thread would block the interpreter for the window, where every Qt call may wait up to 5 ms to reacquire it: pauses of
26 to 82 ms were observed with a thread that only slept for 1 ms at a time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from apps.view.laws.curves import Curve, CurveRequest, curves

_ROOT = Path(__file__).resolve().parents[3]

_CODE = """
import os
os.nice(10)
from apps.view.laws.process import main
main()
"""
"""Code of the process. Its low priority leaves the processors to the window and the servo."""


class LawProcess:
    """Computes curves in a separate process.

    The process starts with the first request and ends with the process of the window.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def curves(self, wanted: CurveRequest) -> list[Curve]:
        """Return the result of `apps.view.laws.curves.curves`; blocks. Empty if the process dies."""
        with self._one_at_a_time:
            try:
                return self._ask(wanted)
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end()
                return []

    def _ask(self, wanted: CurveRequest) -> list[Curve]:
        if self._process is None:
            self._process = _start()
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump(wanted, self._process.stdin)
        self._process.stdin.flush()
        answer: list[Curve] = pickle.load(self._process.stdout)
        return answer

    def _end(self) -> None:
        """Kill the process, so that the next request starts a new one."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError), self._process:
                self._process = None


class LawCurves:
    """Holds the curves of the law in force.

    Attributes
    ----------
    found : list of Curve
        Curves of the last request, or of the previous one until they are computed.
    """

    _process = LawProcess()
    """Process shared by all plots, because loading the laws is slow."""

    def __init__(self) -> None:
        self.found: list[Curve] = []
        self._asked: CurveRequest | None = None
        self._done: CurveRequest | None = None
        self._lock = threading.Lock()
        self._at_work = False
        self._thread: threading.Thread | None = None

    def clear(self) -> None:
        """Clear the curves and the request."""
        with self._lock:
            self.found, self._asked, self._done = [], None, None

    def request(self, wanted: CurveRequest) -> None:
        """Request the curves of a law, which become available in `found`. Cheap if nothing has changed."""
        with self._lock:
            self._asked = wanted
            if wanted == self._done or self._at_work:
                return
            self._at_work = True
        self._thread = threading.Thread(target=self._work, name="law", daemon=True)
        self._thread.start()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until the requested curves are available."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        """Compute curves until the latest request is answered; this thread only waits for the process."""
        while True:
            with self._lock:
                wanted = self._asked
                if wanted is None or wanted == self._done:
                    self._at_work = False
                    return
            found = self._process.curves(wanted)
            with self._lock:
                if self._asked is not None:  # otherwise the request was cleared
                    self.found, self._done = found, wanted


def _start() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    # The process stays in the session of the window: a new session would be scheduled as a separate group with its own
    # share of the processors.
    return subprocess.Popen(
        [sys.executable, "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the process may end last, and must not keep readers of this stream waiting
        env={**os.environ, "PYTHONPATH": path},
    )


def main() -> None:
    """Answer requests until the input ends or the output is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of the terminal
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a law of another package may print to standard output
    questions: Any = sys.stdin.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(curves(pickle.load(questions)), answers)
            answers.flush()
