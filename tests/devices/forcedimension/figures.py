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
import subprocess
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

# Force of the friction law [N], and of the hand normal to the plane.
FORCE, LOAD = 2.0, 5.0

COUPLING = ("--set", "element.stiffness=1500", "--set", "element.damping=4")
EMULATED = ("--set", "device.emulated=true", "--set", "device.hardware_watchdog=0.03")
HAND = {"name": "minimum-jerk", "tremor": 0.0, "speed": 0.1, "rest": 0.0, "stiffness": 1000.0}
STROKES = tuple(part for name, value in HAND.items() for part in ("--set", f"hand.{name}={value}"))
PUSH = ("--set", "hand.name=scripted-force", "--set", "hand.script=[[0,0,0],[0.5,1.0,0.5],[99,1.0,0.5]]")

# Length of the sessions in which the handle is held, or loaded [s].
SHORT = 10.0

# How often a session is repeated that a fault ends, such as the device's watchdog on a busy machine.
ATTEMPTS = 2

_HEAD = (
    "| model | class | another process | sample age: median, 99 % | skipped | force while it slides | drift | "
    "third axis under 5 N: median, largest | faults before |"
)


def run(folder, model, scheduling, seconds, *more):
    """Run a session with `FORCE` of friction, again if a fault ends it; return its answer, recording and the faults."""
    what = ("--device", "forcedimension", "--model", model, "--set", f"law.force={FORCE}", *COUPLING)
    how = ("--duration", f"{seconds:g}", "--headless", "--json", "--set", f"servo.scheduling={scheduling}")
    where = ("--record", str(folder), *NO_PICTURE)
    command = [sys.executable, "-m", "apps", "run", *what, *how, *more, *where]
    faults = 0
    while True:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        if "error" not in answer or faults == ATTEMPTS:
            return answer, Recording(Path(answer["recording"])), faults
        faults += 1
        sys.stderr.write(f"{answer['error']}\n")


def settled(rows):
    """Return the rows after the fade-in, with nothing between the element and the device."""
    return rows[(rows["status"] == 0) & (rows["permission"] == 0) & (rows["time"] > 2.0)]


def sliding(rows):
    """Return the median of the commanded force while the handle slides evenly [N]."""
    rows = settled(rows)
    slides = (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
    return float(np.median(np.hypot(*rows["command"][slides].T))) if slides.any() else np.nan


def drift(rows, count):
    """Return how far a handle that friction holds moves in the longest undisturbed time after two seconds [counts]."""
    clean = (rows["status"] == 0) & (rows["permission"] == 0) & (rows["time"] > 2.0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], clean, [0]]).astype(int))).reshape(-1, 2)
    first, last = edges[int(np.argmax(np.diff(edges, axis=1)))] if len(edges) else (0, 0)
    place = rows["position"][first:last]
    moved = place[-500:].mean(axis=0) - place[:500].mean(axis=0) if last - first > 3000 else np.full(2, np.nan)
    return float(np.hypot(*moved)) / count


def sessions(seconds):
    """Yield the rows of the table of sessions."""
    yield _HEAD
    yield "|---" * (_HEAD.count("|") - 1) + "|"
    for scheduling, loaded, model in itertools.product(("fifo", "other"), (False, True), "BC"):
        with tempfile.TemporaryDirectory() as name, busy() if loaded else contextlib.nullcontext():
            folder = Path(name)
            answer, moving, faults = run(folder / "a", model, scheduling, seconds, *EMULATED, *STROKES)
            _, held, _ = run(folder / "b", model, scheduling, SHORT, *EMULATED, *PUSH)
            with far_end(HAND, sag=LOAD) as library:
                _, pressed, _ = run(folder / "c", model, scheduling, SHORT, "--set", f"device.library={library}")
            rows = settled(pressed.rows)
            height = 1e3 * np.abs(rows["channel_height"][rows["time"] > 4.0])
            age = answer["sample_age_us"]
            middle, most = (np.median(height), height.max()) if len(height) else (np.nan, np.nan)
            yield (
                f"| {model} | {'FIFO' if scheduling == 'fifo' else 'ordinary'} | {'one' if loaded else 'none'} "
                f"| {age['p50'] / 1e3:.2f}, {age['p99'] / 1e3:.2f} ms | {answer['skipped']} of {answer['ticks']} "
                f"| {sliding(moving.rows):.3f} N | {drift(held.rows, 1e-5):.2f} counts "
                f"| {middle:.2f}, {most:.2f} mm | {faults} |"
            )


@contextlib.contextmanager
def far_end(hand, **changes):
    """Run an emulated omega.3 in its own process; yield the path of its library."""
    plane = Plane.of(devices.create_device("forcedimension").settings)
    body = {"name": "1234", "kind": 33, "axes": plane.axes.ravel().tolist(), "hand": hand, "half_width": 0.055,
            "half_height": 0.044, **changes}  # fmt: skip
    table = {"devices": [body], "faults": []}
    with contextlib.ExitStack() as resources:
        with contextlib.suppress(OSError):  # the emulator is scheduled like that of a session
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
        try:
            library = resources.enter_context(child.spawn("devices.emulators.forcedimension", table, "device"))
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
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
    """Yield the rows of the table of velocities.

    Errors are against the true velocity at every tick, without ticks that follow a late sample. The last columns are
    from sessions that use the estimate.
    """
    yield "| estimate | error, rms | 99 % | delay | force while it slides at 2 N | drift |"
    yield "|---|---|---|---|---|---|"
    axes = Plane.of(devices.create_device("forcedimension").settings).axes[:2]
    for source, window in (("positions", 20), ("maker", 20), ("maker", 5)):
        given = ("--set", f"device.velocity_source={source}", "--set", f"device.maker_window={window}")
        given += ("--set", "device.hardware_watchdog=0")  # the estimates do not depend on it
        with tempfile.TemporaryDirectory() as name, far_end({**HAND, "rest": 0.2, "tremor": 0.05}) as library:
            folder = Path(name)
            given += ("--set", f"device.library={library}")
            _, moving, _ = run(folder / "a", "C", "fifo", min(seconds, 20.0), *given)
            log = FarEnd(library, MAKER).log()
            _, held, _ = run(folder / "b", "C", "fifo", SHORT, *EMULATED, *given[:6], *PUSH)
            rows, force, moved = moving.rows, sliding(moving.rows), drift(held.rows, 1e-5)
            now, true = rows["time"] + 1e-9 * moving.metadata[ORIGIN], log["velocity"] @ axes.T
            at = np.column_stack([np.interp(now, log["time"], one) for one in true.T])
            late = np.convolve(rows["sample_age"] > 1.5e-3, np.ones(40))[: len(rows)] > 0.0
            even = ~late & (rows["time"] > 1.0)
            error = np.hypot(*(rows["velocity"] - at)[even].T)
            delay = _delay(now[even], rows["velocity"][even], log["time"], true)
        label = f"maker, {window} ms" if source == "maker" else source
        rms, most = 1e3 * np.sqrt((error**2).mean()), 1e3 * np.percentile(error, 99.0)
        yield (
            f"| {label} | {rms:.2f} mm/s | {most:.1f} mm/s | {1e3 * delay:.1f} ms | {force:.3f} N "
            f"| {moved:.2f} counts |"
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
