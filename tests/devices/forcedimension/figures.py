"""What the Force Dimension driver does at 1 kHz in front of the emulated device: three tables.

``python -m tests.devices.forcedimension.figures [SECONDS [TABLE ...]]`` prints them: ``sessions`` (models B and C, FIFO
and ordinary scheduling, with and without another busy process, SECONDS each, 60 by default), ``lost`` (killed and
stopped processes) and ``velocity`` (estimates against the true velocity). They are of this machine, emulation included.
"""

import contextlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import devices
from devices.common.plane import Plane
from devices.emulators import child
from devices.emulators.forcedimension import MAKER
from devices.emulators.native.far_end import FarEnd
from haptics.recording.recording import ORIGIN, Recording
from tests.devices.arm.figures import busy
from tests.processes import NO_PICTURE, ROOT, RUN, spawned_by, until, written
from tests.system.parallel.commands import haptics

# Force of the friction law [N], and the one that loads the plane.
FORCE, STRONG = 2.0, 5.0

COUPLING = ("--set", "element.stiffness=1500", "--set", "element.damping=4")
STROKES = ("--set", "hand.tremor=0", "--set", "hand.speed=0.1", "--set", "hand.rest=0", "--set", "hand.stiffness=1000")
PUSH = ("--set", "hand.name=scripted-force", "--set", "hand.script=[[0,0,0],[0.5,1.0,0.5],[99,1.0,0.5]]")

# Length of the sessions in which the handle is held, or pushes hard [s].
SHORT = 15.0

_HEAD = (
    "| model | class | another process | sample age: median, 99 % | skipped | force while it slides | drift | "
    "third axis at 5 N: largest |"
)


def run(folder, model, scheduling, seconds, *more, device="forcedimension", force=FORCE):
    """Run a session; return its answer and recording."""
    what = ("--device", device, "--set", "device.emulated=true", "--model", model, "--set", f"law.force={force}")
    if device != "forcedimension":
        what = ("--device", device, "--model", model, "--set", f"law.force={force}")
    how = ("--duration", f"{seconds:g}", "--headless", "--json", "--set", f"servo.scheduling={scheduling}")
    done = haptics("run", *what, *COUPLING, *how, *more, "--record", str(folder), *NO_PICTURE, folder=ROOT)
    answer = json.loads(done.stdout)
    return answer, Recording(Path(answer["recording"]))


def settled(rows):
    """Return the rows after the fade-in, with nothing between the element and the device."""
    return rows[(rows["status"] == 0) & (rows["permission"] == 0) & (rows["time"] > 2.0)]


def sliding(rows):
    """Return the median of the commanded force while the handle slides evenly [N]."""
    rows = settled(rows)
    slides = (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
    return float(np.median(np.hypot(*rows["command"][slides].T)))


def drift(rows, count):
    """Return how far a handle that friction holds moves from the third second to the last [counts]."""
    place = rows[rows["time"] > 2.0]["position"]
    return float(np.hypot(*(place[-500:].mean(axis=0) - place[:500].mean(axis=0)))) / count


def sessions(seconds):
    """Yield the rows of the table of sessions."""
    yield _HEAD
    yield "|---" * (_HEAD.count("|") - 1) + "|"
    for loaded, model, scheduling in itertools.product((False, True), "BC", ("fifo", "other")):
        with tempfile.TemporaryDirectory() as name, busy() if loaded else contextlib.nullcontext():
            folder = Path(name)
            answer, moving = run(folder / "a", model, scheduling, seconds, *STROKES)
            _, held = run(folder / "b", model, scheduling, SHORT, *PUSH)
            _, hard = run(folder / "c", model, scheduling, SHORT, *STROKES, force=STRONG)
            height = np.abs(settled(hard.rows)["channel_height"])
            age = answer["sample_age_us"]
            yield (
                f"| {model} | {'FIFO' if scheduling == 'fifo' else 'ordinary'} | {'one' if loaded else 'none'} "
                f"| {age['p50'] / 1e3:.2f}, {age['p99'] / 1e3:.2f} ms | {answer['skipped']} "
                f"| {sliding(moving.rows):.3f} N | {drift(held.rows, 1e-5):.2f} counts | {1e3 * height.max():.2f} mm |"
            )


@contextlib.contextmanager
def far_end(hand):
    """Run an emulated omega.3 in its own process; yield the path of its library."""
    plane = Plane.of(devices.create_device("forcedimension").settings)
    body = {"name": "1234", "kind": 33, "axes": plane.axes.ravel().tolist(), "hand": hand, "half_width": 0.055,
            "half_height": 0.044}  # fmt: skip
    table = {"devices": [body], "faults": []}
    with child.spawn("devices.emulators.forcedimension", table, "device") as library:
        yield library


def lost(_):
    """Yield the rows of the table of lost processes: time to zero force by the record of the device."""
    yield "| process | signal | without force after | cause |"
    yield "|---|---|---|---|"
    hand = {"name": "minimum-jerk", "speed": 0.05, "rest": 0.0, "tremor": 0.0}
    for process, number in itertools.product(("application", "servo"), (signal.SIGKILL, signal.SIGSTOP)):
        with tempfile.TemporaryDirectory() as name, far_end(hand) as library:
            far = FarEnd(library, MAKER)
            device = ("--device", "forcedimension", "--set", f"device.library={library}", "--model", "C")
            where = ("--headless", "--duration", "60", "--record", str(Path(name) / "recordings"))
            with written(Path(name), *RUN, *device, *where) as application:
                until(lambda far=far: _pushes(far.log()), "the device has no force")
                pid = application.pid if process == "application" else spawned_by(application.pid)[0]
                instant = time.monotonic()
                os.kill(pid, number)
                until(lambda far=far: not far.state["forces_on"], "the forces stay on", every=0.005)
                rows = far.log()
                pushed = np.flatnonzero(np.hypot(*rows["applied"][:, :2].T) > 0.0)
                after = rows["time"][pushed[-1] + 1] - instant
                cause = int(far.state["cause"])
                application.kill()
        yield f"| {process} | {number.name} | {1e3 * after:.1f} ms | {cause or 'switched off by the driver'} |"


def _pushes(rows):
    return len(rows) > 500 and bool((np.hypot(*rows["applied"][-100:, :2].T) > 0.5).all())


def velocity(seconds):
    """Yield the rows of the table of velocities: estimates in a session against the true velocity at every tick."""
    yield "| estimate | error, rms | largest | delay |"
    yield "|---|---|---|---|"
    axes = Plane.of(devices.create_device("forcedimension").settings).axes[:2]
    for window in (20, 5):
        hand = {"name": "minimum-jerk", "speed": 0.1, "rest": 0.2, "tremor": 0.05}
        with tempfile.TemporaryDirectory() as name, far_end(hand) as library:
            given = ("--set", f"device.library={library}", "--set", f"device.maker_window={window}")
            what = ("--device", "forcedimension", "--model", "C", "--set", "law.force=0.5", *given)
            how = ("--duration", f"{min(seconds, 20.0):g}", "--headless", "--json", "--record", name, *NO_PICTURE)
            recording = Recording(Path(json.loads(haptics("run", *what, *how, folder=ROOT).stdout)["recording"]))
            log = FarEnd(library, MAKER).log()
        rows = recording.rows[recording.rows["time"] > 1.0]
        now, true = rows["time"] + 1e-9 * recording.metadata[ORIGIN], log["velocity"] @ axes.T
        at = np.column_stack([np.interp(now, log["time"], one) for one in true.T])
        for label, column in ((f"maker's, {window} ms", "channel_maker_velocity"), ("from positions", "velocity")):
            if column == "velocity" and window != 20:
                continue
            error = np.hypot(*(rows[column] - at).T)
            yield (
                f"| {label} | {1e3 * np.sqrt((error**2).mean()):.2f} mm/s | {1e3 * error.max():.1f} mm/s "
                f"| {1e3 * _delay(now, rows[column], log['time'], true):.1f} ms |"
            )


def _delay(now, found, times, true):
    """Return the delay with which an estimate fits best to the true velocity [s]."""
    lags = np.arange(0.0, 0.02, 1e-4)
    errors = [
        sum(np.mean((found[:, i] - np.interp(now - lag, times, true[:, i])) ** 2) for i in range(2)) for lag in lags
    ]
    return float(lags[int(np.argmin(errors))])


TABLES = {"sessions": sessions, "lost": lost, "velocity": velocity}


def main(arguments):
    """Print the tables, a row as soon as it is known."""
    seconds = float(arguments[0]) if arguments else 60.0
    sys.stdout.write(f"{seconds:g} s each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start\n")
    for name in arguments[1:] or TABLES:
        sys.stdout.write(f"\n{name}\n\n")
        for row in TABLES[name](seconds):
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
