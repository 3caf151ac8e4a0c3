"""A servo process that is started before its job is known, and imports the servo meanwhile.

This module needs neither NumPy nor numba, so that an application can start the process as its first act: the imports of
both processes, which take longer than anything else before the first tick, then go on side by side.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import multiprocessing
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Self

FOR_THE_APPLICATION = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP)
"""Signals that a terminal sends to all its processes. The application decides what they mean; a frozen servo would
leave its last force on."""


@contextlib.contextmanager
def without_signals() -> Iterator[None]:
    """Block the signals of a terminal; a process that is started meanwhile never receives them."""
    resource_tracker.ensure_running()  # which would let them through again if it were started meanwhile
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_APPLICATION)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Standby:
    """A process for one servo. As a context manager it starts the process and ends it if it has received no job.

    Attributes
    ----------
    process : Process
        The process.
    connection : Connection
        Pipe to the servo. It reports the end of the process.
    programs : Connection
        Pipe for the programs that take over in mid-run.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit windows, threads and locks
        self.connection, self._far_end = context.Pipe()
        self._far_programs, self.programs = context.Pipe(duplex=False)
        ends = self._far_end, self._far_programs
        self.process = context.Process(target=_serve_next_job, args=ends, name="haptics servo")
        self._has_job = False

    def start(self) -> None:
        """Start the process, unless it runs already."""
        if self.process.pid is not None:
            return
        with without_signals():  # from its first instruction on
            self.process.start()
        self._far_end.close()  # so that the pipe reports the end of the process
        self._far_programs.close()
        atexit.register(self.connection.close)  # an application that leaves without `close` is not waited for

    def send(self, job: object) -> None:
        """Send the one job of the process, a `haptics.servo.job.Job`."""
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
    from haptics.servo.serving import serve

    gc.enable()
    try:
        job = connection.recv()
    except (EOFError, ConnectionError):  # the application is gone
        return
    serve(job, connection, programs)
