"""What the driver of the Falcon does at 1 kHz in front of an emulated Falcon: a table of whole sessions.

``python -m tests.devices.falcon.figures [SECONDS [DEVICE ...]]`` prints it: models C and B, FIFO and ordinary
scheduling, with and without another busy process; 60 s each, with two sessions in a row: the first slides, the second
is held by friction against a push. Other devices, such as ``virtual-joystick``, are for comparison. ``losses`` in place
of SECONDS prints how soon the emulated Falcon has no force after its application or servo was killed or stopped.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from devices.common.log import DEVICE_LOG
from devices.emulated.falcon import EMULATED_LOG
from haptics.recording.recording import Recording
from tests.devices.arm.figures import busy
from tests.processes import NO_PICTURE, ROOT, RUN, device_log, program, recordings, spawned_by, until
from tests.system.parallel.commands import haptics

# Of the friction law, and of the push against it [N].
FORCE, PUSH = 2.0, 1.0

# Of the hand across the plane [N].
ACROSS = 5.0

# Ticks in which a pushed handle comes to rest.
SETTLING = 3000

# Smallest step of the position [m].
COUNTS = {"falcon": 4.3e-5, "inverse3": 1e-5, "virtual-joystick": 1e-5}

COUPLING = ("--set", "element.stiffness=1500", "--set", "element.damping=4")
STROKES = ("hand.tremor=0", "hand.speed=0.1", "hand.rest=0", "hand.stiffness=1000")
HELD = ("hand.name=scripted-force", f"hand.script=[[0,0,0],[0.5,{PUSH},0.5],[999,{PUSH},0.5]]")

_HEAD = (
    "| device | model | class | another process | sample age: median, 99 % | skipped, lost | force while it slides "
    "| force of friction in the stroke | drift while it is held | height while it slides: largest |"
)


def session(device, folder, model, scheduling, seconds, hand):
    """Run a session on the emulated device; return its answer and its recording."""
    own = () if device == "virtual-joystick" else ("device.emulated=true",)
    across = (f"device.sag={ACROSS}",) if device == "falcon" else ()
    words = [word for text in (*own, *across, *hand, f"servo.scheduling={scheduling}") for word in ("--set", text)]
    how = ("--duration", f"{seconds:g}", "--headless", "--json", "--record", str(folder), *NO_PICTURE)
    law = ("--model", model, "--set", f"law.force={FORCE}", *COUPLING)
    done = haptics("run", "--device", device, *law, *words, *how, folder=ROOT)
    answer = json.loads(done.stdout)
    return answer, Recording(Path(answer["recording"]))


def drift(rows):
    """Return the displacement (2,) [m] of a held handle in the longest stretch without safe output.

    Without usable samples there is no force, and the hand pushes the handle. Afterwards it swings for some time.
    """
    stale = np.flatnonzero(rows["sample_age"] > 9e-3)
    edges = np.concatenate([[0], stale, [len(rows)]])
    longest = int(np.argmax(np.diff(edges)))
    first, last = int(edges[longest]) + SETTLING, int(edges[longest + 1])
    place = rows["position"][first:last]
    return place[-500:].mean(axis=0) - place[:500].mean(axis=0) if len(place) > 1000 else np.full(2, np.nan)


def line(device, model, scheduling, loaded, seconds):
    """Return one row of the table."""
    with tempfile.TemporaryDirectory() as folder, busy() if loaded else contextlib.nullcontext():
        answer, moving = session(device, Path(folder) / "slides", model, scheduling, seconds, STROKES)
        _, held = session(device, Path(folder) / "held", model, scheduling, seconds, HELD)
        rows = moving.rows
        free = (rows["status"] == 0) & (rows["permission"] == 0) & (rows["time"] > 1.0)
        slides = free & (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
        told = np.median(np.hypot(*rows["command"][slides].T))
        friction = np.median(np.hypot(*rows["friction_force"][slides].T))
        way = drift(held.rows)
        height = np.abs(rows["channel_height"][free]).max() if "channel_height" in rows.dtype.names else 0.0
    age = answer["sample_age_us"]
    return (
        f"| {device} | {model} | {'FIFO' if scheduling == 'fifo' else 'ordinary'} | {'one' if loaded else 'none'} "
        f"| {age['p50'] / 1e3:.2f}, {age['p99'] / 1e3:.2f} ms | {answer['skipped']}, {answer['lost_ticks']} "
        f"| {told:.3f} N | {friction:.3f} N "
        f"| {1e6 * np.hypot(*way):.1f} um = {np.hypot(*way) / COUNTS[device]:.2f} counts "
        f"| {1e3 * height:.2f} mm |\n"
    )


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
    """Print the table, a row as each pair of sessions ends."""
    if arguments == ["losses"]:
        for who, number in itertools.product(("application", "servo"), (signal.SIGKILL, signal.SIGSTOP)):
            times = [1e3 * loss(who, number) for _ in range(3)]
            sys.stdout.write(f"{number.name} of the {who}: {', '.join(f'{each:.0f}' for each in times)} ms\n")
            sys.stdout.flush()
        return 0
    seconds, devices = float(arguments[0]) if arguments else 60.0, arguments[1:] or ["falcon"]
    sys.stdout.write(f"{seconds:g} s each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start\n\n")
    sys.stdout.write(f"{_HEAD}\n{'|---' * _HEAD.count(' |')}|\n")
    for device, loaded, model, scheduling in itertools.product(devices, (False, True), "CB", ("fifo", "other")):
        sys.stdout.write(line(device, model, scheduling, loaded, seconds))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
