"""Transfer of new programs (elements, motions) to a running servo process.

The application writes a program to the journal of the recording and sends the journal entry through a separate pipe. A
thread of the servo process loads the program and passes it to the servo, which switches to it at the next tick.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection

from haptics.rendering.programs import read_program
from haptics.servo.job import Job
from haptics.servo.servo import Servo


class Arrivals(threading.Thread):
    """Thread that receives programs until the application closes its end of the pipe.

    Parameters
    ----------
    connection : Connection
        Pipe that delivers journal entries.
    job : Job
        Job of the servo.
    servo : Servo
        The running servo.
    """

    def __init__(self, connection: Connection, job: Job, servo: Servo) -> None:
        super().__init__(name="haptics arrivals", daemon=True)
        self._connection, self._job, self._servo = connection, job, servo

    def run(self) -> None:
        """Receive programs and pass them to the servo."""
        first, folder = self._job.element, self._job.recording
        try:
            while True:
                line = self._connection.recv()
                program = read_program(folder, line, first.causality, first.period)
                self._servo.take(program, int(line["program"]), int(line["version"]))
        except (EOFError, OSError):  # the application has died or closed the pipe
            return
