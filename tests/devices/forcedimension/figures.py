"""Figures of the emulated Force Dimension device at 1 kHz.

``python -m tests.devices.forcedimension.figures [SECONDS [TABLE ...]]`` prints four tables: ``strokes`` (models C and
B, FIFO and ordinary scheduling, with and without another busy process, SECONDS each, 60 by default), ``pressed`` (5 N
normal to the plane), ``lost`` (killed and stopped processes) and ``velocity`` (estimates against the true velocity).
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import devices
from devices.common.plane import Plane
from devices.emulators import child
from devices.emulators.forcedimension import MAKER
from devices.emulators.native.far_end import FarEnd
from devices.forcedimension.library import NAME
from haptics.recording.recording import ORIGIN
from tests.devices.sessions import (
    HEAD,
    HELD,
    LOST_HEAD,
    SHORT,
    drift,
    height,
    lost,
    session,
    sliding,
    strokes,
    write_start,
    write_table,
)

# Force of the hand normal to the plane [N], and smallest step of the position [m].
LOAD, COUNT = 5.0, 1e-5

COUPLING = ("element.stiffness=1500", "element.damping=4")
EMULATED = ("device.emulated=true", "device.hardware_watchdog=0.03")
HAND = {"name": "minimum-jerk", "tremor": 0.0, "speed": 0.1, "rest": 0.0, "stiffness": 1000.0}


@contextlib.contextmanager
def far_end(hand, **changes):
    """Run an emulated omega.3 in its own process; yield the path of its library."""
    plane = Plane.of(devices.create_device("forcedimension").settings)
    body = {"name": "1234", "kind": 33, "axes": plane.axes.ravel().tolist(), "hand": hand, "half_width": 0.055,
            "half_height": 0.044, **changes}  # fmt: skip
    table = {"devices": [body], "faults": []}
    with contextlib.ExitStack() as resources:
        with contextlib.suppress(OSError):  # as in a session with an emulated device
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
        try:
            library = resources.enter_context(child.spawn("devices.emulators.forcedimension", table, "device"))
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        yield library


def pressed():
    """Yield the rows of sessions in which the hand strokes and presses on the plane."""
    for model in "CB":
        with tempfile.TemporaryDirectory() as folder, far_end(HAND, sag=LOAD) as library:
            settings = (*COUPLING, f"device.library={library}")
            _, recording, faults = session(folder, NAME, model, "fifo", SHORT, *settings)
            yield model, height(recording.rows), faults


def velocity(seconds):
    """Yield the rows of the table of velocities.

    Errors are against the true velocity at every tick, without ticks that follow a late sample. The last columns are
    from sessions that use the estimate.
    """
    axes = Plane.of(devices.create_device("forcedimension").settings).axes[:2]
    for source, window in (("positions", 20), ("maker", 20), ("maker", 5)):
        given = (*COUPLING, f"device.velocity_source={source}", f"device.maker_window={window}")
        given += ("device.hardware_watchdog=0",)  # the estimates do not depend on it
        with tempfile.TemporaryDirectory() as name, far_end({**HAND, "rest": 0.2, "tremor": 0.05}) as library:
            where = f"device.library={library}"
            _, moving, _ = session(Path(name), NAME, "C", "fifo", min(seconds, 20.0), *given, where)
            rows, log = moving.rows, FarEnd(library, MAKER).log()
            now, true = rows["time"] + 1e-9 * moving.metadata[ORIGIN], log["velocity"] @ axes.T
            at = np.column_stack([np.interp(now, log["time"], one) for one in true.T])
            late = np.convolve(rows["sample_age"] > 1.5e-3, np.ones(40))[: len(rows)] > 0.0
            even = ~late & (rows["time"] > 1.0)
            error = np.hypot(*(rows["velocity"] - at)[even].T)
            delay = _delay(now[even], rows["velocity"][even], log["time"], true)
        with tempfile.TemporaryDirectory() as name:
            _, held, _ = session(Path(name), NAME, "C", "fifo", SHORT, "device.emulated=true", *given, *HELD)
            force, moved = sliding(rows)[0], drift(held.rows) / COUNT
        label = f"maker, {window} ms" if source == "maker" else source
        rms, most = 1e3 * np.sqrt((error**2).mean()), 1e3 * np.percentile(error, 99.0)
        yield (
            label, f"{rms:.2f} mm/s", f"{most:.1f} mm/s", f"{1e3 * delay:.1f} ms", f"{force:.3f} N",
            f"{moved:.2f} counts",
        )  # fmt: skip


def _delay(now, found, times, true):
    """Return the delay with which an estimate fits best to the true velocity [s]."""
    lags = np.arange(0.0, 0.02, 1e-4)
    errors = [
        sum(np.mean((found[:, i] - np.interp(now - lag, times, true[:, i])) ** 2) for i in range(2)) for lag in lags
    ]
    return float(lags[int(np.argmin(errors))])


TABLES = {
    "strokes": (HEAD, lambda seconds: strokes(NAME, seconds, (*EMULATED, *COUPLING), COUNT)),
    "pressed": (("model", "height under 5 N: median, largest", "faults before"), lambda _: pressed()),
    "lost": (LOST_HEAD, lambda _: lost(NAME, MAKER, lambda: far_end(HAND), *COUPLING)),
    "velocity": (
        ("estimate", "error, rms", "99 %", "delay", "force while it slides at 2 N", "drift while held"),
        velocity,
    ),
}


def main(arguments):
    """Print the tables."""
    seconds = float(arguments[0]) if arguments else 60.0
    write_start(seconds)
    for name in arguments[1:] or TABLES:
        head, rows = TABLES[name]
        write_table(head, rows(seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
