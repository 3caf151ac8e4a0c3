"""Servo process that is started before its job is known and imports the servo in advance.

This module needs neither NumPy nor numba, so that an application can start the process first. The imports of both
processes, which take longer than anything else before the first tick, then run in parallel.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import multiprocessing
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Self

TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP)
"""Signals that a terminal sends to all its processes.

Only the application handles them, because a stopped servo would leave its last force applied.
"""


@contextlib.contextmanager
def without_signals() -> Iterator[None]:
    """Block the signals of a terminal; a process started within the context inherits the blocked signals."""
    resource_tracker.ensure_running()  # the tracker unblocks the signals when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINAL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Standby:
    """Process for one servo.

    As a context manager it starts the process and ends it if it has received no job.

    Attributes
    ----------
    process : Process
        The process.
    connection : Connection
        Pipe to the servo. It reports the end of the process.
    programs : Connection
        Pipe for programs that replace the present one during the run.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit windows, threads and locks
        self.connection, self._far_end = context.Pipe()
        self._far_programs, self.programs = context.Pipe(duplex=False)
        ends = self._far_end, self._far_programs
        self.process = context.Process(target=_serve_next_job, args=ends, name="haptics servo")
        self._has_job = False

    def start(self) -> None:
        """Start the process, unless it is running."""
        if self.process.pid is not None:
            return
        with without_signals():  # from its first instruction on
            self.process.start()
        self._far_end.close()  # so that the pipe reports the end of the process
        self._far_programs.close()
        atexit.register(self.connection.close)  # an application that exits without `close` does not wait

    def send(self, job: object) -> None:
        """Send the one job of the process, a `haptics.servo.control.Job`."""
        self._has_job = True
        with contextlib.suppress(OSError):  # the process died: the pipe reports that
            self.connection.send(job)

    def close(self) -> None:
        """Close the pipes, and kill a process without a job; one with a job ends by itself."""
        if self.process.pid is None:
            self._far_end.close()
            self._far_programs.close()
        elif not self._has_job:
            self.process.kill()
            self.process.join()
        self.programs.close()
        self.connection.close()
        atexit.unregister(self.connection.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._has_job:
            self.close()


def _serve_next_job(connection: Connection, programs: Connection) -> None:
    """Import the servo, wait for the job and run it."""
    gc.disable()  # imports leave no garbage
    servo = importlib.import_module("haptics.servo.process")  # the process module uses this one
    gc.enable()
    try:
        job = connection.recv()
    except (EOFError, ConnectionError):  # the application has ended
        return
    servo.serve_job(job, connection, programs)
