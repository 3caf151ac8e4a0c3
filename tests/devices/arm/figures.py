"""Sample age and steadiness of friction of the emulated arm: a table of whole sessions.

``python -m tests.devices.arm.figures [SECONDS [PROTOCOL ...]]`` prints it: models A and D, every protocol or the named
ones, FIFO and ordinary scheduling, with and without another busy process. 60 s each, 26 min in all. Time stolen is the
time that a virtual machine lost to others on its host, summed over processors.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from haptics.recording.recording import Recording
from tests.processes import NO_PICTURE, ROOT
from tests.system.parallel.commands import haptics

# Slower than this the arm may be turning back [m/s].
SLOW = 0.02

# Ticks that a stroke must last at least.
STROKE = 200

# Ticks over which the acceleration is averaged.
SMOOTHED = 21

_HEAD = (
    "| protocol | model | class | another process | sample age: median, 99 % | skipped, lost | "
    "force while it slides: standard deviation, without inertia | tick: median, 99 % | time stolen | fit |"
)


@contextlib.contextmanager
def busy():
    """Have another process compute without end."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def session(folder, protocol, model, scheduling, seconds):
    """Run the emulated arm with a hand that strokes a surface with 6 N of friction; return its answer."""
    arm = ("--device", "arm", "--set", "device.emulated=true", "--set", f"device.motors.protocol={protocol}")
    how = ("--duration", f"{seconds:g}", "--headless", "--json", "--set", f"servo.scheduling={scheduling}")
    where = ("--record", str(folder), *NO_PICTURE)
    done = haptics("run", *arm, "--model", model, *how, *where, folder=ROOT)
    return dict(json.loads(done.stdout))


def unsteadiness(rows, mass):
    """Return the standard deviation of the force along the path in long strokes, with and without m a [N].

    The hand feels friction and the rendered mass; the inertial force is no unsteadiness of the friction.
    """
    velocity, speed = rows["velocity"], np.hypot(*rows["velocity"].T)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], speed > SLOW, [0]]).astype(int))).reshape(-1, 2)
    inside = np.zeros(len(rows), dtype=bool)
    for first, last in edges[np.diff(edges, axis=1)[:, 0] > STROKE]:
        inside[first + STROKE // 4 : last - SMOOTHED] = True
    even = np.ones(SMOOTHED) / SMOOTHED
    smooth = np.column_stack([np.convolve(one, even, "same") for one in velocity.T])
    acceleration = np.gradient(smooth, rows["time"], axis=0)
    way = velocity[inside] / speed[inside, None]
    along = (rows["force"][inside] * way).sum(axis=1)
    return float(along.std()), float((along - mass * (acceleration[inside] * way).sum(axis=1)).std())


def line(protocol, model, scheduling, loaded, seconds):
    """Return one row of the table."""
    with tempfile.TemporaryDirectory() as folder, busy() if loaded else contextlib.nullcontext():
        answer = session(Path(folder), protocol, model, scheduling, seconds)
        recording = Recording(Path(answer["recording"]))
        stolen = recording.metadata["certificate"]["stolen_s"]
        tick = 1e6 * np.percentile(recording.rows["tick_time"], (50.0, 99.0))
        whole, steady = unsteadiness(recording.rows, recording.metadata["configuration"]["element"]["mass"])
    age = answer["sample_age_us"]
    return (
        f"| {protocol} | {model} | {'FIFO' if scheduling == 'fifo' else 'ordinary'} | {'one' if loaded else 'none'} "
        f"| {age['p50'] / 1e3:.2f}, {age['p99'] / 1e3:.2f} ms | {answer['skipped']}, {answer['lost_ticks']} "
        f"| {whole:.2f}, {steady:.2f} N | {tick[0]:.0f}, {tick[1]:.0f} us "
        f"| {stolen:.2f} s | {'yes' if answer['fit'] else 'no'} |\n"
    )


def main(arguments):
    """Print the table, a row as each session ends."""
    seconds = float(arguments[0]) if arguments else 60.0
    protocols = arguments[1:] or ["text", "can", "native"]
    sys.stdout.write(f"{seconds:g} s each, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start\n\n")
    sys.stdout.write(f"{_HEAD}\n{'|---' * _HEAD.count(' |')}|\n")
    for loaded, protocol, model, scheduling in itertools.product(
        (False, True), protocols, ("A", "D"), ("fifo", "other")
    ):
        sys.stdout.write(line(protocol, model, scheduling, loaded, seconds))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
