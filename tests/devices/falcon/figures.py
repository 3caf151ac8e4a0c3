"""Figures of the emulated Falcon at 1 kHz.

``python -m tests.devices.falcon.figures [SECONDS [TABLE ...]]`` prints three tables: ``strokes`` (models C and B, FIFO
and ordinary scheduling, with and without another busy process, SECONDS each, 60 by default, with 5 N normal to the
plane), ``pressed`` (other forces normal to the plane) and ``lost`` (killed and stopped processes).
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devices.common.log import DEVICE_LOG
from devices.emulated.falcon import EMULATED_LOG
from tests.devices import sessions
from tests.processes import RUN, device_log, program, recordings, spawned_by, until

NAME = "falcon"

COUNT = 4.3e-5
"""Smallest step of the position [m]."""

COUPLING = ("element.stiffness=1500", "element.damping=4")
EMULATED = "device.emulated=true"


def lost():
    """Yield the rows of sessions whose process is killed or stopped, by the emulated Falcon's own log."""

    def row(who, number):
        with tempfile.TemporaryDirectory() as folder:
            settings = (EMULATED, f"law.force={sessions.FORCE}", *sessions.HELD)
            words = [word for text in settings for word in ("--set", text)]
            where = ("--headless", "--record", folder, "--duration", "60")
            run = (*RUN, "--device", NAME, "--model", "C", *words, *where)
            with program(*run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as application:
                (recording,) = until(lambda: recordings(Path(folder)), "no recording")
                until(lambda: (recording / DEVICE_LOG).exists() and len(device_log(recording)) > 1500, "no ticks")
                assert application.poll() is None, "the session has ended"
                (servo,) = spawned_by(application.pid)
                begin = time.monotonic()
                os.kill(servo if who == "servo" else application.pid, number)
                log = recording / EMULATED_LOG
                until(log.exists, "the emulated Falcon does not end")
                found = json.loads(log.read_text())
        assert found["motors"] == [0, 0, 0]
        return (f"{1e3 * (found['zero_at'] - begin):.0f} ms",)

    for who, number in sessions.LOSSES:
        yield (who, number.name), functools.partial(row, who, number)


TABLES = {
    "strokes": (
        sessions.HEAD,
        lambda seconds: sessions.strokes(NAME, seconds, (EMULATED, "device.sag=5", *COUPLING), COUNT),
    ),
    "pressed": (
        sessions.PRESSED_HEAD,
        lambda _: sessions.pressed(
            NAME, (1.0, 5.0, 8.0), lambda force: contextlib.nullcontext(f"device.sag={force:g}"), EMULATED, *COUPLING
        ),
    ),
    "lost": (("process", "signal", "zero force after"), lambda _: lost()),
}

if __name__ == "__main__":
    sys.exit(sessions.print_tables(TABLES, sys.argv[1:]))
