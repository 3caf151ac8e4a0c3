"""New programs (elements, motions) for a running servo process: received, made ready, put in force between two ticks.

The application writes a program into the journal of the recording and sends the line by a pipe of its own. A thread of
the servo process reads what belongs to it and hands it to the servo, which goes on with it from the next tick on.
"""

from __future__ import annotations

import threading
from multiprocessing.connection import Connection

from haptics.rendering.programs import read_program
from haptics.servo.job import Job
from haptics.servo.servo import Servo


class Arrivals(threading.Thread):
    """Receives programs until the application closes its end.

    Parameters
    ----------
    connection : Connection
        Brings lines of the journal.
    job : Job
        What the servo does.
    servo : Servo
        Who does it.
    """

    def __init__(self, connection: Connection, job: Job, servo: Servo) -> None:
        super().__init__(name="haptics arrivals", daemon=True)
        self._connection, self._job, self._servo = connection, job, servo

    def run(self) -> None:
        """Put every program in force that comes."""
        first, folder = self._job.element, self._job.recording
        try:
            while True:
                line = self._connection.recv()
                program = read_program(folder, line, first.causality, first.period)
                self._servo.take(program, int(line["program"]), int(line["version"]))
        except (EOFError, OSError):  # the application is gone, or has no more
            return
