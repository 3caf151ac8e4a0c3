"""Figures of the emulated Falcon at 1 kHz: sample age, sliding force, third axis, drift, and lost processes.

``python -m tests.devices.falcon.figures [SECONDS [DEVICE ...]]`` prints a table: models C and B, FIFO and ordinary
scheduling, with and without another busy process; SECONDS each, 60 by default, with 5 N across the plane. Other
devices, such as ``virtual-joystick``, are for comparison. ``losses`` in place of SECONDS prints the time until the
emulated Falcon has no force after its application or servo was killed or stopped.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devices.common.log import DEVICE_LOG
from devices.emulated.falcon import EMULATED_LOG
from tests.devices.sessions import FORCE, HEAD, HELD, strokes, write_start, write_table
from tests.processes import RUN, device_log, program, recordings, spawned_by, until

COUPLING = ("element.stiffness=1500", "element.damping=4")

# Settings of each device, and its smallest step of the position [m].
EMULATED = {
    "falcon": (("device.emulated=true", "device.sag=5"), 4.3e-5),
    "inverse3": (("device.emulated=true",), 1e-5),
    "virtual-joystick": ((), 1e-5),
}


def loss(who, number):
    """Kill or stop a process of a session; return the time until the motors were zero, by the Falcon's log [s]."""
    with tempfile.TemporaryDirectory() as folder:
        words = [word for text in ("device.emulated=true", *HELD) for word in ("--set", text)]
        where = ("--headless", "--record", folder, "--duration", "60")
        run = (*RUN, "--device", "falcon", "--model", "C", "--set", f"law.force={FORCE}", *words, *where)
        with program(*run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as application:
            (recording,) = until(lambda: recordings(Path(folder)), "no recording")
            until(lambda: (recording / DEVICE_LOG).exists() and len(device_log(recording)) > 1500, "no ticks")
            assert application.poll() is None, "the session has ended"
            (servo,) = spawned_by(application.pid)
            pid = servo if who == "servo" else application.pid
            begin = time.monotonic()
            os.kill(pid, number)
            log = recording / EMULATED_LOG
            until(log.exists, "the emulated Falcon does not end")
            found = json.loads(log.read_text())
    assert found["motors"] == [0, 0, 0]
    return found["zero_at"] - begin


def main(arguments):
    """Print the tables."""
    if arguments == ["losses"]:
        for who, number in itertools.product(("application", "servo"), (signal.SIGKILL, signal.SIGSTOP)):
            times = [1e3 * loss(who, number) for _ in range(3)]
            sys.stdout.write(f"{number.name} of the {who}: {', '.join(f'{each:.0f}' for each in times)} ms\n")
            sys.stdout.flush()
        return 0
    seconds = float(arguments[0]) if arguments else 60.0
    write_start(seconds)
    for device in arguments[1:] or ["falcon"]:
        settings, count = EMULATED[device]
        write_table(HEAD, strokes(device, seconds, (*settings, *COUPLING), count))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
