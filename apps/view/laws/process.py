"""The process that works out what laws say: laws are loaded and compiled there, not beside a window.

In a thread they would take the interpreter from the window, whose every call of Qt's then waits up to 5 ms to have it
back: gaps of 26 to 82 ms were seen beside it in a thread that only slept for 1 ms at a time.
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

from apps.view.laws.curves import Curve, Wanted, curves

_ROOT = Path(__file__).resolve().parents[3]

_CODE = """
import os
os.nice(10)
from apps.view.laws.process import main
main()
"""
"""What the process runs. Others come first: a curve may be late, the window and the servo may not."""


class LawProcess:
    """Works out curves in a process of its own, which starts with the first question and ends with this one."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def curves(self, wanted: Wanted) -> list[Curve]:
        """Return what `apps.view.laws.curves.curves` does, and wait for it; no curve where the process dies."""
        with self._one_at_a_time:
            try:
                return self._ask(wanted)
            except (OSError, EOFError, pickle.UnpicklingError):
                self._end()
                return []

    def _ask(self, wanted: Wanted) -> list[Curve]:
        if self._process is None:
            self._process = _start()
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump(wanted, self._process.stdin)
        self._process.stdin.flush()
        answer: list[Curve] = pickle.load(self._process.stdout)
        return answer

    def _end(self) -> None:
        """Have the next question answered by a new process."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(OSError), self._process:
                self._process = None


class LawCurves:
    """Keeps the curves of the law in force.

    Attributes
    ----------
    found : list of Curve
        What was asked for last, or before while that is being worked out.
    """

    _process = LawProcess()
    """One for all plots: loading the laws is what takes long."""

    def __init__(self) -> None:
        self.found: list[Curve] = []
        self._asked: Wanted | None = None
        self._done: Wanted | None = None
        self._lock = threading.Lock()
        self._at_work = False
        self._thread: threading.Thread | None = None

    def forget(self) -> None:
        """Have no curve until one is asked for."""
        with self._lock:
            self.found, self._asked, self._done = [], None, None

    def ask(self, wanted: Wanted) -> None:
        """Want the curves of this law; they are `found` soon. Cheap if nothing has changed."""
        with self._lock:
            self._asked = wanted
            if wanted == self._done or self._at_work:
                return
            self._at_work = True
        self._thread = threading.Thread(target=self._work, name="law", daemon=True)
        self._thread.start()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until what was asked for is there."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self) -> None:
        """Have it worked out until that is what is asked for; all that this thread does is to wait."""
        while True:
            with self._lock:
                wanted = self._asked
                if wanted is None or wanted == self._done:
                    self._at_work = False
                    return
            found = self._process.curves(wanted)
            with self._lock:
                if self._asked is not None:  # else nobody wants it any more
                    self.found, self._done = found, wanted


def _start() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    # In the session of the window: a new one would count as a user of its own, with a share of the processors.
    return subprocess.Popen(
        [sys.executable, "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may be the last to end, and must keep nobody who reads that waiting
        env={**os.environ, "PYTHONPATH": path},
    )


def main() -> None:
    """Answer questions until there are no more of them, or nobody who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches all that a terminal has started
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a law of a package may print
    questions: Any = sys.stdin.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(curves(pickle.load(questions)), answers)
            answers.flush()
