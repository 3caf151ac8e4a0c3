"""Sessions with the emulated Touch at 1 kHz: sample age, sliding force, third axis, drift, and ends of processes.

``python -m tests.devices.touch.figures [SECONDS]`` prints the tables: models C and B, FIFO and ordinary scheduling,
with and without another busy process; a held handle, also on the virtual joystick; and processes that are killed or
stopped, by the record of the emulated device. They are of this machine, emulation included. 60 s each, 25 min in all.
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

from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.devices.arm.figures import busy
from tests.devices.touch.rigs import body, serving, wait_until
from tests.processes import NO_PICTURE, ROOT, written

FORCE, COUNT = 2.0, 5.5e-5
"""Of the friction law [N], and of the position [m]."""

EMULATED = ("device.emulated=true", "device.full_force_time=3600")
COUPLING = ("element.stiffness=1000", "element.damping=4", f"law.force={FORCE}")
STROKES = ("hand.tremor=0", "hand.speed=0.1", "hand.rest=0", "hand.stiffness=1000")
# Pushes across the plane, with up to 5 N in all directions.
PUSHES = [[0.3 * k, *(5.0 * np.array(way))] for k, way in enumerate([(1, 0), (-1, 0), (0, 1), (0, -1)] * 250)]
HELD = ("hand.name=scripted-force", "hand.script=[[0,0,0],[0.5,1.2,0.6],[99,1.2,0.6]]")


ATTEMPTS = 3
"""Sessions per row, until one ends without a fault: other programs with real-time priority may stop the emulator."""


def session(folder, device, model, seconds, scheduling, *settings):
    """Run a session; return its certificate with the number of faults before it, and the recording."""
    words = [word for text in (*COUPLING, *settings, f"servo.scheduling={scheduling}") for word in ("--set", text)]
    how = ("--duration", f"{seconds:g}", "--headless", "--json", *NO_PICTURE)
    for attempt in range(ATTEMPTS):
        place = Path(folder) / str(attempt)
        command = [sys.executable, "-m", "apps", "run", "--device", device, "--model", model, *how, *words]
        done = subprocess.run([*command, "--record", str(place)], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0 or attempt + 1 == ATTEMPTS:
            break
        sys.stderr.write(done.stderr.strip().splitlines()[-1] + "\n")
    recording = Recording(next(place.iterdir()))
    return {**recording.metadata["certificate"], "faults": attempt + (done.returncode != 0)}, recording


def sliding(rows):
    """Return the median of the force while the handle slides, and its standard deviation [N]."""
    slides = (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03) & (rows["status"] == 0)
    force = np.hypot(*rows["command"][slides].T)
    return float(np.median(force)), float(force.std())


def drift(rows):
    """Return the distance between the mean places of a held handle, in its first and last second [counts]."""
    place = rows[rows["time"] > 1.5]["position"]
    return float(np.hypot(*(place[-1000:].mean(axis=0) - place[:1000].mean(axis=0)))) / COUNT


def table(head, rows):
    """Print a table, a row as each session ends."""
    sys.stdout.write(f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|\n")
    for row in rows:
        sys.stdout.write(f"| {' | '.join(map(str, row))} |\n")
        sys.stdout.flush()


def strokes(seconds):
    """Yield the rows of the sessions with strokes."""
    for loaded, model, scheduling in itertools.product((False, True), "CB", ("fifo", "other")):
        with tempfile.TemporaryDirectory() as folder, busy() if loaded else contextlib.nullcontext():
            answer, recording = session(folder, "touch", model, seconds, scheduling, *EMULATED, *STROKES)
            force, spread = sliding(recording.rows)
            height = 1e3 * np.percentile(np.abs(recording.rows["channel_height"][1000:]), (99.9, 100))
            ages = np.percentile(recording.rows["sample_age"], (50, 99)) * 1e3
            yield (
                model, "FIFO" if scheduling == "fifo" else "ordinary", "one" if loaded else "none",
                f"{ages[0]:.2f}, {ages[1]:.2f} ms", f"{answer['skipped']} of {answer['ticks']}",
                f"{force:.3f} N, {spread:.3f} N", f"{height[0]:.2f}, {height[1]:.2f} mm", verify(recording).mismatches,
                "yes" if answer["fit"] else "no", answer["faults"],
            )  # fmt: skip


def held(seconds):
    """Yield the rows of the sessions with a held handle."""
    for device, model in itertools.product(("touch", "virtual-joystick"), "CB"):
        own = EMULATED if device == "touch" else (f"device.resolution={COUNT}",)
        with tempfile.TemporaryDirectory() as folder:
            _, recording = session(folder, device, model, seconds, "fifo", *own, *HELD)
            sticks = (recording.rows["sticking"][1500:] == 1).mean()
            yield device, model, f"{drift(recording.rows):.3f}", f"{100 * sticks:.1f} %"


def pushed(seconds):
    """Yield the row of a session in which the hand pushes across the plane."""
    hand = ("hand.name=scripted-force", f"hand.script={json.dumps(PUSHES)}", "device.damping=20")
    with tempfile.TemporaryDirectory() as folder:
        _, recording = session(folder, "touch", "C", seconds, "fifo", *EMULATED, *hand)
        rows = recording.rows[1000:]
        yield f"{1e3 * np.abs(rows['channel_height']).max():.2f} mm", f"{np.ptp(rows['position'][:, 0]) * 1e3:.0f} mm"


def ends():
    """Yield the rows of processes that are killed or stopped during a session."""
    hand = {"name": "minimum-jerk", "points": [[-0.05, 0.0], [0.05, 0.0]], "speed": 0.1, "rest": 0.0, "pause": 0.0}
    for process, number in itertools.product(("application", "servo"), (signal.SIGKILL, signal.SIGSTOP)):
        with serving(body(hand=hand)) as rig, tempfile.TemporaryDirectory() as folder:
            far = rig.far()
            words = ("-m", "apps", "run", "--device", "touch", "--model", "C", "--headless", "--duration", "20")
            settings = [f"device.library={rig.library}", *COUPLING, f"session.record={folder}"]
            words += tuple(word for text in settings for word in ("--set", text))
            with written(Path(folder), *words, *NO_PICTURE) as application:
                wait_until(lambda far=far: np.abs(far.log()[-1:]["applied"]).max(initial=0.0) > 1.5, 60.0)
                found = application.pid if process == "application" else _servo(application.pid)
                began = time.monotonic()
                os.kill(found, number)
                wait_until(lambda far=far: not far.log()[-1]["applied"].any())
                log = far.log()
                zero = log[(log["time"] >= began) & ~log["applied"].any(axis=1)]
                yield process, signal.Signals(number).name, f"{1e3 * (zero['time'][0] - began):.1f} ms"
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found, signal.SIGKILL)


def _servo(parent):
    """Return the child process of the application that has the device open: the one with the most threads."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return max(map(int, children), key=lambda pid: len(os.listdir(f"/proc/{pid}/task")))


def main(arguments):
    """Print the tables."""
    seconds = float(arguments[0]) if arguments else 60.0
    sys.stdout.write(f"{seconds:g} s each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start\n")
    head = ("model", "class", "another process", "sample age: median, 99 %", "skipped", "sliding: median, deviation",
            "height: 99.9 %, most", "mismatches", "fit", "faults before")  # fmt: skip
    table(head, strokes(seconds))
    table(("device", "model", "drift [counts]", "sticking"), held(seconds))
    table(("height under 5 N across the plane", "travel"), pushed(min(seconds, 20.0)))
    table(("process", "signal", "zero force after"), ends())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
