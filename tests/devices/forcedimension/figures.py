"""Figures of the emulated Force Dimension device at 1 kHz.

``python -m tests.devices.forcedimension.figures [SECONDS [TABLE ...]]`` prints four tables: ``strokes`` (models C and
B, FIFO and ordinary scheduling, with and without another busy process, SECONDS each, 60 by default), ``pressed``
(forces normal to the plane), ``lost`` (killed and stopped processes) and ``velocity`` (estimates against the true
velocity).
"""

import contextlib
import functools
import sys
import tempfile
from pathlib import Path

import numpy as np

import devices
from devices.common.plane import Plane
from devices.emulators.forcedimension import MAKER, WEIGHT
from devices.emulators.native.far_end import Body, FarEnd
from devices.forcedimension.library import NAME
from haptics.recording.recording import ORIGIN
from tests.devices import sessions
from tests.devices.sessions import HELD, SHORT, drift, session, sliding

COUNT = 1e-5
"""Smallest step of the position [m]."""

COUPLING = ("element.stiffness=1500", "element.damping=4")
WATCHDOG = "device.hardware_watchdog=0.03"
HAND = {"name": "minimum-jerk", "tremor": 0.0, "speed": 0.1, "rest": 0.0, "stiffness": 1000.0}

AXES = Plane.of(devices.create_device(NAME).settings).axes


def far_end(hand=HAND, **changes):
    """Run an emulated omega.3 in its own process; a context with the path of its library."""
    size = {"half_width": 0.055, "half_height": 0.044}
    body = Body("1234", 33, axes=AXES.ravel().tolist(), hand=hand, weight=WEIGHT, **size, **changes)
    return sessions.far_end(NAME, body)


@contextlib.contextmanager
def loaded(force):
    """Run a device whose hand also presses on the plane; yield the setting of its library."""
    with far_end(sag=force) as library:
        yield f"device.library={library}"


def velocities(seconds):
    """Yield the rows of the table of velocities.

    Errors are against the true velocity at every tick, without ticks that follow a late sample. The last columns are
    from sessions that use the estimate.
    """

    def row(source, window):
        given = (*COUPLING, f"device.velocity_source={source}", f"device.maker_window={window}")
        given += ("device.hardware_watchdog=0",)  # the estimates do not depend on it
        with tempfile.TemporaryDirectory() as name, far_end({**HAND, "rest": 0.2, "tremor": 0.05}) as library:
            where = f"device.library={library}"
            _, moving, _ = session(Path(name), NAME, "C", "fifo", min(seconds, 20.0), *given, where)
            rows, log = moving.rows, FarEnd(library, MAKER).log()
            now, true = rows["time"] + 1e-9 * moving.metadata[ORIGIN], log["velocity"] @ AXES[:2].T
            at = np.column_stack([np.interp(now, log["time"], one) for one in true.T])
            late = np.convolve(rows["sample_age"] > 1.5e-3, np.ones(40))[: len(rows)] > 0.0
            even = ~late & (rows["time"] > 1.0)
            error = np.hypot(*(rows["velocity"] - at)[even].T)
            delay = _delay(now[even], rows["velocity"][even], log["time"], true)
        with tempfile.TemporaryDirectory() as name:
            _, held, _ = session(Path(name), NAME, "C", "fifo", SHORT, "device.emulated=true", *given, *HELD)
            force, moved = sliding(rows)[0], drift(held.rows) / COUNT
        rms, most = 1e3 * np.sqrt((error**2).mean()), 1e3 * np.percentile(error, 99.0)
        return (
            f"{rms:.2f} mm/s", f"{most:.1f} mm/s", f"{1e3 * delay:.1f} ms", f"{force:.3f} N", f"{moved:.2f} counts"
        )  # fmt: skip

    for source, window in (("positions", 20), ("maker", 20), ("maker", 5)):
        label = f"maker, {window} ms" if source == "maker" else source
        yield (label,), functools.partial(row, source, window)


def _delay(now, found, times, true):
    """Return the delay with which an estimate fits best to the true velocity [s]."""
    lags = np.arange(0.0, 0.02, 1e-4)
    errors = [
        sum(np.mean((found[:, i] - np.interp(now - lag, times, true[:, i])) ** 2) for i in range(2)) for lag in lags
    ]
    return float(lags[int(np.argmin(errors))])


TABLES = {
    "strokes": (
        sessions.HEAD,
        lambda seconds: sessions.strokes(NAME, seconds, ("device.emulated=true", WATCHDOG, *COUPLING), COUNT),
    ),
    "pressed": (sessions.PRESSED_HEAD, lambda _: sessions.pressed(NAME, (1.0, 5.0, 8.0), loaded, *COUPLING)),
    "lost": (sessions.LOST_HEAD, lambda _: sessions.lost(NAME, MAKER, far_end, *COUPLING)),
    "velocity": (
        ("estimate", "error, rms", "99 %", "delay", "force while it slides at 2 N", "drift while held"),
        velocities,
    ),
}

if __name__ == "__main__":
    sys.exit(sessions.print_tables(TABLES, sys.argv[1:]))
