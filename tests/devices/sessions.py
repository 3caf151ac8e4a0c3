"""Sessions with emulated devices in a plane, and the tables of their figures: sample age, force, drift, lost processes.

The modules ``tests.devices.*.figures`` print them with `print_tables`. The figures are of this machine, emulation
included. A row that cannot be measured has its cause, and the other rows are measured all the same.
"""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

from devices.emulators import child
from devices.emulators.native.far_end import FarEnd
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import UNUSABLE, Status
from tests.devices.arm.figures import busy
from tests.processes import ROOT, RUN, spawned_by, until, written

# Force of the friction law [N], and of the hand that pushes a held handle along each axis.
FORCE, PUSH = 2.0, 1.0

STROKES = ("hand.tremor=0", "hand.speed=0.1", "hand.rest=0", "hand.stiffness=1000")
HELD = ("hand.name=scripted-force", f"hand.script=[[0,0,0],[0.5,{PUSH},{PUSH / 2}],[9999,{PUSH},{PUSH / 2}]]")

# Ticks until a pushed handle is at rest.
SETTLING = 2000

# Flags of ticks whose force was not changed.
LATE = int(Status.STARTED_LATE | Status.ENDED_LATE | Status.AFTER_SKIP)

# Length of the sessions in which the handle is held or loaded [s].
SHORT = 10.0

# Sessions per row, until one ends without a fault: a busy machine may stop the emulator.
ATTEMPTS = 3

HEAD = (
    "model", "class", "another process", "sample age: median, 99 %", "skipped, lost",
    "force while it slides: median, deviation", "height: median, largest", "mismatches", "fit",
    "drift while held, without skipped ticks", "faults before",
)  # fmt: skip


class SessionFailed(Exception):
    """A session ended with a fault in every attempt."""


def session(folder, device, model, scheduling, seconds, *settings):
    """Run a session with `FORCE` of friction, again if a fault ends it; return its answer, recording and the faults."""
    texts = (f"law.force={FORCE}", f"servo.scheduling={scheduling}", *settings)
    words = [word for text in texts for word in ("--set", text)]
    how = ("--duration", f"{seconds:g}", "--headless", "--device", device, "--model", model)
    for faults in range(ATTEMPTS):
        command = [sys.executable, *RUN, *how, *words, "--record", str(Path(folder) / str(faults))]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout) if done.stdout else {"error": done.stderr.strip().rpartition("\n")[2]}
        if "error" not in answer:
            return answer, Recording(Path(answer["recording"])), faults
        sys.stderr.write(f"{answer['error']}\n")
    raise SessionFailed(answer["error"])


def undisturbed(rows):
    """Return a mask of the rows after the fade-in in which the force of the element reached the device."""
    return (rows["status"] & LATE == rows["status"]) & (rows["permission"] == 0) & (rows["time"] > 2.0)


def sliding(rows):
    """Return the median and the standard deviation of the commanded force while the handle slides evenly [N]."""
    slides = undisturbed(rows) & (rows["sticking"] == 0) & (np.hypot(*rows["velocity"].T) > 0.03)
    force = np.hypot(*rows["command"][slides].T)
    return (float(np.median(force)), float(force.std())) if len(force) else (np.nan, np.nan)


def unrendered(rows):
    """Return the motion in skipped ticks, cumulative, (n, 2) [m].

    The velocity of a tick is the mean since the last tick, and the element integrates it over one period. The contact
    of a held handle therefore moves by the rest of the motion.
    """
    missed = np.diff(rows["tick"], prepend=rows["tick"][0] - 1) - 1
    period = (rows["time"][-1] - rows["time"][0]) / (rows["tick"][-1] - rows["tick"][0])
    return np.cumsum(period * missed[:, None] * rows["velocity"], axis=0)


def drift(rows, *, rendered=False):
    """Return how far a handle that friction holds moves in the longest time without safe output [m].

    With `rendered`, the motion in skipped ticks does not count. Without usable samples there is no force, and the hand
    pushes the handle. Afterwards it swings for some time. The result is NaN if less than a second remains.
    """
    usable = (rows["status"] & UNUSABLE == 0) & (rows["time"] > 2.0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], usable, [0]]).astype(int))).reshape(-1, 2)
    first, last = edges[int(np.argmax(np.diff(edges, axis=1)))] if len(edges) else (0, 0)
    place = (rows["position"] - unrendered(rows) if rendered else rows["position"])[first + SETTLING : last]
    moved = place[-500:].mean(axis=0) - place[:500].mean(axis=0) if len(place) > 1000 else np.full(2, np.nan)
    return float(np.hypot(*moved))


def strokes(device, seconds, settings, count):
    """Yield the rows of a table with `HEAD`: models C and B, both classes, with and without another busy process.

    Parameters
    ----------
    device : str
        Name of the device.
    seconds : float
        Duration of the sessions with strokes [s].
    settings : sequence of str
        Settings of both sessions of a row: strokes, and a held handle.
    count : float
        Smallest step of the position [m].
    """

    def row(model, scheduling, loaded):
        with tempfile.TemporaryDirectory() as folder, busy() if loaded else contextlib.nullcontext():
            slides = session(Path(folder) / "slides", device, model, scheduling, seconds, *settings, *STROKES)
            _, held, again = session(Path(folder) / "held", device, model, scheduling, SHORT, *settings, *HELD)
            answer, recording, faults = slides
            age, (force, spread) = answer["sample_age_us"], sliding(recording.rows)
            moved, without = drift(held.rows), drift(held.rows, rendered=True)
            return (
                f"{age['p50'] / 1e3:.2f}, {age['p99'] / 1e3:.2f} ms",
                f"{answer['skipped']} of {answer['ticks']}, {answer['lost_ticks']}",
                f"{force:.3f}, {spread:.3f} N", height(recording.rows), verify(recording).mismatches,
                "yes" if answer["fit"] else "no",
                f"{1e6 * moved:.1f} um = {moved / count:.2f} counts, {without / count:.2f}", faults + again,
            )  # fmt: skip

    for loaded, model, scheduling in itertools.product((False, True), "CB", ("fifo", "other")):
        labels = (model, "FIFO" if scheduling == "fifo" else "ordinary", "one" if loaded else "none")
        yield labels, functools.partial(row, model, scheduling, loaded)


PRESSED_HEAD = ("force normal to the plane", "height: median, largest", "warning", "faults before")


def pressed(device, forces, served, *settings):
    """Yield the rows of a table with `PRESSED_HEAD`: the third axis under constant forces, with model C and FIFO.

    Parameters
    ----------
    device : str
        Name of the device.
    forces : sequence of float
        Forces of the hand normal to the plane [N].
    served : callable
        Takes a force and returns a context with the setting that selects a device with this force.
    *settings : str
        Further settings of the sessions.
    """

    def row(force):
        with tempfile.TemporaryDirectory() as folder, served(force) as selected:
            answer, recording, faults = session(folder, device, "C", "fifo", SHORT, selected, *settings)
            return height(recording.rows), "yes" if "third axis" in " ".join(answer["advice"]) else "no", faults

    for force in forces:
        yield (f"{force:g} N",), functools.partial(row, force)


@contextlib.contextmanager
def far_end(device, body):
    """Run an emulated device in its own process, as in a session; yield the path of its library.

    Parameters
    ----------
    device : str
        Name of the device.
    body : devices.emulators.native.far_end.Body
        Its properties.
    """
    table = {"devices": [dataclasses.asdict(body)], "faults": []}
    with contextlib.ExitStack() as resources:
        with contextlib.suppress(OSError):  # of the thread that starts the emulator
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
        try:
            library = resources.enter_context(child.spawn(f"devices.emulators.{device}", table, device))
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        yield library


def height(rows):
    """Return the median and the largest distance from the plane as a text, while the third axis is held.

    It is free during the safe output, and returns to the plane slowly afterwards.
    """
    if "channel_height" not in rows.dtype.names:
        return "-"
    free = np.cumsum((rows["status"] & (UNUSABLE | Status.FADE)) != 0)
    lately = free > np.concatenate([np.zeros(SETTLING, int), free])[: len(free)]
    distance = 1e3 * np.abs(rows["channel_height"][undisturbed(rows) & ~lately])
    return f"{np.median(distance):.2f}, {distance.max():.2f} mm" if len(distance) else "-"


LOST_HEAD = ("process", "signal", "zero force after", "cause of the switch-off")
LOSSES = tuple(itertools.product(("application", "servo"), (signal.SIGKILL, signal.SIGSTOP)))


def lost(device, maker, served, *settings):
    """Yield the rows of a table with `LOST_HEAD`, by the record of the emulated device.

    Parameters
    ----------
    device : str
        Name of the device.
    maker : devices.emulators.native.far_end.Maker
        Maker of its library.
    served : callable
        Returns a context with the path of the library of a device whose hand strokes.
    *settings : str
        Settings of the session.
    """

    def row(process, number):
        with served() as library, tempfile.TemporaryDirectory() as name:
            far = FarEnd(library, maker)
            texts = (f"device.library={library}", f"law.force={FORCE}", *settings)
            words = [word for text in texts for word in ("--set", text)]
            where = ("--headless", "--duration", "60", "--record", str(Path(name) / "recordings"))
            with written(Path(name), *RUN, "--device", device, "--model", "C", *words, *where) as application:
                until(lambda: application.poll() is not None or _pushes(far.log()), "the device has no force")
                if application.poll() is not None:
                    raise SessionFailed((Path(name) / "err").read_text().strip().rpartition("\n")[2])
                pid = application.pid if process == "application" else spawned_by(application.pid)[0]
                instant = time.monotonic()
                os.kill(pid, number)
                until(lambda: not far.log()[-1]["applied"].any(), "the force remains", every=0.005)
                rows, cause = far.log(), int(far.state["cause"])
                after = rows["time"][np.flatnonzero(rows["applied"].any(axis=1))[-1] + 1] - instant
                return f"{1e3 * after:.1f} ms", cause or "-"

    for process, number in LOSSES:
        yield (process, number.name), functools.partial(row, process, number)


def _pushes(rows):
    return len(rows) > 500 and bool((np.linalg.norm(rows["applied"][-100:], axis=1) > 0.5).all())


def print_tables(tables, arguments):
    """Print tables, each row when its sessions have ended; return the exit status, 1 if a row failed.

    Parameters
    ----------
    tables : mapping
        Head and rows by name. The rows are a function of the duration [s], which yields the first cells of a row and a
        function that measures the others.
    arguments : sequence of str
        ``[SECONDS [TABLE ...]]``: duration of the long sessions, 60 s by default, and the tables, all by default.
    """
    seconds, failures = float(arguments[0]) if arguments else 60.0, 0
    sys.stdout.write(f"{seconds:g} s each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start\n")
    for name in arguments[1:] or tables:
        head, rows = tables[name]
        sys.stdout.write(f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|\n")
        for labels, measure in rows(seconds):
            try:
                cells = measure()
            except Exception as error:  # a long measurement must not end without its other rows
                failures += 1
                traceback.print_exc()
                cells = [f"failed: {' '.join(str(error).split()) or type(error).__name__}"]
                cells += ["-"] * (len(head) - len(labels) - 1)
            sys.stdout.write(f"| {' | '.join(map(str, (*labels, *cells)))} |\n")
            sys.stdout.flush()
    return 1 if failures else 0
