"""Every figure of every device's data sheet and its measured value: the tables of ``docs/data_sheets.md``.

``python -m tests.devices.data_sheets [DEVICE ...]`` prints them, for all devices by default. Figures of emulated
devices include the emulation and follow the clock of this machine, which should be idle. The last line states its load.
"""

import functools
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.motions import Mover, drive
from devices import create_device
from haptics import Coulomb, MasslessImpedance, RigidAdmittance
from haptics.clock import Clock
from haptics.design import FIRM_GRIP, advise
from haptics.design.advice import plain
from haptics.device import Causality
from haptics.recording.recording import Recording
from haptics.rendering.programs import Motion, constant_reference, reference
from tests.processes import NO_PICTURE, ROOT

# Of a session [s].
PERIOD = 1e-3

# Hand speed that separates single encoder steps [m/s].
GENTLE = 0.005

# A handle that is slower may have nothing new to say for some ticks [m/s].
MOVES = 0.8 * GENTLE

# What differs by less is the same position [m].
TOLD = 1e-9


def ages(rows):
    """Return how old samples of a moving handle were: median, and the hundredth part that was older [s]."""
    moves = np.linalg.norm(rows["velocity"], axis=1) > MOVES
    found = rows["sample_age"][moves & np.isfinite(rows["sample_age"])]
    middle, most = np.percentile(found, (50, 99)) if len(found) else (math.nan, math.nan)
    return float(middle), float(most)


def hand_over(rows):
    """Return the median time from taking a sample until the force made of it was the device's [s]."""
    found = rows["sample_age"] + rows["write_time"]
    return float(np.median(found[np.isfinite(found)]))


def step(rows):
    """Return the step of the position along the axis that moves most: the median of its steps [m]."""
    moves = np.abs(np.diff(rows["position"], axis=0))
    along = moves[:, int(np.argmax(moves.sum(axis=0)))]
    told = along[along > TOLD]
    return float(np.median(told)) if len(told) else math.nan


def residual(rows, friction):
    """Return the force of the hand minus `friction` while it slides slowly [N]; nan if the hand force is unknown."""
    speeds = np.linalg.norm(rows["velocity"], axis=1)
    slides = (rows["sticking"] == 0) & (speeds > 0.5 * GENTLE) & np.isfinite(rows["hand_force"]).all(axis=1)
    if slides.sum() < 100:
        return math.nan
    along = np.sum(rows["hand_force"][slides] * rows["velocity"][slides], axis=1) / speeds[slides]
    return float(np.median(along) - friction)


def fastest(rows):
    """Return the greatest speed of the reference [m/s]."""
    return float(np.linalg.norm(np.diff(rows["command"], axis=0), axis=1).max() / PERIOD)


def strongest(rows):
    """Return the greatest force that was commanded [N]."""
    return float(np.linalg.norm(rows["command"], axis=1).max())


# Of a contact that slides on an arm [N].
FRICTION = 6.0

# Masses among which the least one that does not shake is looked for [kg].
LIGHTEST, HEAVIEST = 0.05, 3.2

# A mass that shakes and one that does not are as near as that: factor.
NEAR = 1.2

# A hand leads the arm round a circle: duration [s], radius [m], and number of the judged last ticks.
ROUND, RADIUS, TURNING = 3.0, 0.05, 1500

# An arm shakes whose force has more than that [N rms] above that frequency [Hz].
LOUD, HUM = 4.0, 40.0

# A stiffness that no device stands [N/m].
TOO_MUCH = 1e9

# Part of the way to the edge along which a handle is pushed; times before that, of which one is to come up [s].
PART, REST, EASED = 0.7, 0.05, 0.15

# Ticks of a speed estimate.
WINDOW = 10

# Where a data sheet states none [kg].
USUAL_MASS = 0.2


# --- advice -----------------------------------------------------------------------------------------------------------


def advised_stiffness(spec, damping):
    """Return the stiffness above which advice warns of a contact with this `damping` [N/m]; None without advice."""
    advice = advise(MasslessImpedance(Coulomb(1.0), TOO_MUCH, damping), spec)
    return next((one.limit for one in advice if one.bound == "stiffness"), None)


def advised_mass(spec):
    """Return the virtual mass below which advice warns [kg]; None without advice."""
    advice = advise(RigidAdmittance(Coulomb(FRICTION), 1.0 / TOO_MUCH), spec)
    return next((one.limit for one in advice if one.bound == "mass"), None)


# --- an arm that shakes ----------------------------------------------------------------------------------------------


def circle(folder, spec):
    """Return the settings of a hand that leads an arm round a circle once in a second, as firmly as advice expects."""
    stiffness, damping = spec.grip_stiffness or FIRM_GRIP[0], spec.grip_damping or FIRM_GRIP[1]
    time = np.arange(0.0, ROUND + 1.0, 2e-3)
    turn = 2.0 * math.pi * np.where(time < 0.5, time**2, time - 0.25)
    file = folder / "circle.csv"
    rows = np.column_stack((time, RADIUS * np.cos(turn), RADIUS * np.sin(turn)))
    np.savetxt(file, rows, delimiter=",", header="time,x,y", comments="")
    return "hand.name=recorded", f"hand.stiffness={stiffness:g}", f"hand.damping={damping:g}", f"hand.file={file}"


def hum(rows):
    """Return the force above `HUM` in the last ticks of a hand [N rms]; infinite if a limit ended the run."""
    if len(rows) < TURNING + 1000:
        return math.inf
    steady = rows["force"][-TURNING:] - rows["force"][-TURNING:].mean(axis=0)
    spectrum = np.fft.rfft(steady * np.hanning(TURNING)[:, None], axis=0)
    loud = spectrum[np.fft.rfftfreq(TURNING, 1e-3) > HUM]
    return math.sqrt(2.0 * float((np.abs(loud) ** 2).sum()) / (0.375 * TURNING**2))


def least_mass(shakes):
    """Return the least stable mass, found by bisection, as text."""
    low, high = LIGHTEST, HEAVIEST
    while high > NEAR * low:
        middle = math.sqrt(low * high)
        if shakes(middle):
            low = middle
        else:
            high = middle
    if low == LIGHTEST:
        return f"less than {high:.2g} kg"
    return f"{math.sqrt(low * high):.2g} kg" if high < HEAVIEST else f"more than {low:.2g} kg"


# --- a handle that is driven no faster -------------------------------------------------------------------------------


def fastest_driven(mover, folder):
    """Return the greatest speed at which the motors drive the released handle [m/s], within the envelope."""
    found = []
    drive(mover, _driven(mover.spec, found), folder)
    return found[0]


def _driven(spec, found):
    """Push the handle with all force towards the farther edge, and catch it."""
    move = functools.partial(Motion, Causality.IMPEDANCE, bound=spec.max_force)
    rows = yield move(constant_reference(REST), relative=True, label="rest")
    place = float(rows["position"][-1, 0])
    forwards, back = spec.workspace_max[0] - place, place - spec.workspace_min[0]
    ticks = _ticks(spec, PART * max(forwards, back))
    force = np.zeros((round(EASED / 1e-3) + 2 * ticks, 2))
    force[-2 * ticks :, 0] = np.repeat(math.copysign(spec.max_force, forwards - back), 2 * ticks)
    force[-ticks:] *= -1.0
    rows = yield move(reference(np.zeros_like(force), force=force), relative=True, label="push")
    found.append(top_speed(rows))


def top_speed(rows):
    """Return the greatest speed along x, by the places of the handle [m/s]."""
    moved, ticks = (values[WINDOW:] - values[:-WINDOW] for values in (rows["position"][:, 0], rows["tick"]))
    return float(np.max(np.abs(moved) / (1e-3 * ticks)))


def _ticks(spec, way):
    """Return how many ticks a push lasts that drives the handle to the largest speed, if it can, and on along `way`."""
    acceleration, speed = spec.max_force / (spec.mass or USUAL_MASS), spec.max_speed
    rising = speed**2 / (2.0 * acceleration)
    if rising > way:
        return round(math.sqrt(2.0 * way / acceleration) / 1e-3)
    return round((speed / acceleration + (way - rising) / speed) / 1e-3)


# How long each session is [s].
SLOW, STROKES, PUSH = 6.0, 6.0, 2.0

# Exit status of a session that a limit has ended: its recording counts.
FAULTED = 4

# Attempts of a calibration that a limit ended, for example on a busy machine.
ATTEMPTS = 3

# Names of the lines that have advice in place of the data sheet.
STIFFEST, LEAST_MASS = "largest stiffness, by advice", "least virtual mass, by advice"

# The hand of a handle that is let alone.
NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}


@dataclass(frozen=True)
class Subject:
    """A device that is measured: its name in the table, backend, settings, and whether it needs a clock."""

    title: str
    backend: str
    settings: tuple[str, ...] = ()
    clock: str = "wall"

    def __str__(self):
        """Its title."""
        return self.title

    @property
    def table(self):
        """Its settings."""
        from apps.settings.config import gather

        return gather(None, self.settings).get("device", {})

    @property
    def spec(self):
        """Its data sheet."""
        return create_device(self.backend, self.table, clock=Clock(PERIOD)).spec

    @property
    def words(self):
        """Arguments of a command besides the device name."""
        return ["--clock", self.clock, *(word for text in self.settings for word in ("--set", text))]


EMULATED = ("device.emulated=true",)
SUBJECTS = (
    Subject("virtual-joystick", "virtual-joystick", clock="off"),
    Subject("virtual-arm", "virtual-arm", clock="off"),
    Subject("pid-joystick, emulated", "pid-joystick", EMULATED),
    Subject("pantograph, emulated", "pantograph", EMULATED),
    Subject("inverse3, emulated", "inverse3", EMULATED),
    Subject("forcedimension, emulated", "forcedimension", EMULATED),
    Subject("touch, emulated", "touch", EMULATED),
    Subject("falcon, emulated", "falcon", EMULATED),
    Subject("arm, emulated, text", "arm", (*EMULATED, "device.motors.protocol=text")),
    Subject("arm, emulated, CAN", "arm", (*EMULATED, "device.motors.protocol=can")),
)


def haptics(*arguments):
    """Run a command; return its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "apps", *arguments, "--json"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if done.returncode not in (0, FAULTED):
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def calibrated(what, subject, folder, *told):
    """Calibrate something of a device; return the answer of the command, empty if a limit ended it every time."""
    where = ("--device", subject.backend, "--out", str(folder / f"{what}.toml"), "--record", str(folder))
    answer = {}
    for _ in range(ATTEMPTS):
        answer = haptics("calibrate", what, *where, *told, *subject.words)
        if "out" in answer:
            return answer
    sys.stderr.write(f"{subject}: {what} was not calibrated: {answer}\n")
    return {}


def session(subject, folder, seconds, *hand):
    """Run a session and return its rows that nothing but the element has decided."""
    model = "C" if subject.spec.causality is Causality.IMPEDANCE else "A"
    told = [*subject.words, *(word for text in hand for word in ("--set", text))]
    where = ("--device", subject.backend, "--model", model, "--record", str(folder))
    answer = haptics("run", *where, "--duration", f"{seconds:g}", "--headless", *NO_PICTURE, *told)
    return Recording(Path(answer["recording"])).rows


# --- the table -------------------------------------------------------------------------------------------------------


def cell(value, unit, scale=1.0):
    """Return a number with its unit, None for none."""
    if value is None or not math.isfinite(value):
        return None
    return f"{scale * value:.3g} {unit}".rstrip()


def push(force):
    """Return the settings of a hand that pushes along x."""
    script = f"[[0,0,0],[0.3,{force:g},0],[99,{force:g},0]]"
    return "hand.name=scripted-force", f"hand.script={script}"


def stated(spec, clock):
    """Return the text of each figure of a data sheet, None if it is not stated."""
    found = {}
    if clock == "wall":
        found["sample age, median"] = None
        found["sample age, 99 %"] = f"at most {cell(spec.max_sample_age, 'ms', 1e3)}"
    found["position resolution"] = cell(spec.position_resolution, "um", 1e6)
    found["delay"] = cell(spec.delay, "ms", 1e3)
    if spec.causality is Causality.IMPEDANCE:
        found["least friction"] = cell(spec.least_friction, "N")
        found["largest force"] = cell(spec.max_force, "N")
    found["largest speed"] = cell(spec.max_speed, "m/s")
    if spec.causality is Causality.ADMITTANCE:
        found["servo frequency"] = cell(spec.servo_frequency, "Hz")
        found["servo damping ratio"] = cell(spec.servo_damping_ratio, "")
    return found


def measured(subject, folder):
    """Measure the figures of a device."""
    spec, steady = subject.spec, ("hand.tremor=0", "hand.rest=0", "hand.pause=0")
    moving = session(subject, folder / "strokes", STROKES, *steady, "hand.speed=0.1")
    slow = session(subject, folder / "slow", SLOW, *steady, f"hand.speed={GENTLE:g}", "law.force=1")
    middle, most = ages(moving)
    found = {
        "sample age, median": cell(middle, "ms", 1e3),
        "sample age, 99 %": cell(most, "ms", 1e3),
        "position resolution": cell(step(slow), "um", 1e6),
    }
    if spec.causality is Causality.IMPEDANCE:
        hard = session(
            subject, folder / "hard", PUSH, *push(2.0 * spec.max_force), f"law.force={10 * spec.max_force:g}"
        )
        delay = hand_over(moving) if subject.clock == "wall" else None  # a run without a clock takes no time
        own = {"delay": cell(delay, "ms", 1e3), "largest force": cell(strongest(hard), "N")}
        alone = Mover.of(subject.backend, {**subject.table, "hand": NOBODY}, live=subject.clock == "wall")
        speed = fastest_driven(alone, folder / "driven")
        return found | own | {"largest speed": cell(speed, "m/s"), "least friction": cell(residual(slow, 1.0), "N")}
    hard = session(subject, folder / "hard", PUSH, *push(20.0))
    return found | {"largest speed": cell(fastest(hard), "m/s")}


def stiffness(subject, folder):
    """Return above which stiffness a contact swings: as advice says, and as `haptics calibrate device` measures."""
    told = "--set", "autotune.axes=x", "--set", "autotune.pushes=20"
    answer = calibrated("device", subject, folder, *told)
    if not answer:
        return (STIFFEST, None, None)
    found = answer["axis"]["x"]["boundary"]
    damping, boundary = found["damping_ns_per_m"], found.get("stiffness_n_per_m")
    advised = advised_stiffness(subject.spec, damping)
    sheet = None if advised is None else f"{plain(advised)} N/m with {plain(damping)} N s/m"
    held = found.get("stable_stiffness_n_per_m", 0.0)
    return (STIFFEST, sheet, f"{plain(boundary)} N/m" if boundary else f"more than {plain(held)} N/m")


def lightest(subject, known, folder):
    """Return the least stable virtual mass of an arm: by advice, and in sessions.

    Advice uses the calibrated servo if the data sheet states no least mass.
    """
    spec = subject.spec if subject.spec.least_mass else replace(subject.spec, **known)
    hand = circle(folder, spec)

    def shakes(mass):
        what = f"law.force={FRICTION:g}", f"element.mass={mass:.4g}"
        return hum(session(subject, folder / f"{mass:.4g}", ROUND, *hand, *what)) > LOUD

    return (LEAST_MASS, cell(advised_mass(spec), "kg"), least_mass(shakes))


def rows_of(subject, folder):
    """Yield all lines of a device: the figure, its value by data sheet or advice, and its measured value."""
    found, impedance = measured(subject, folder), subject.spec.causality is Causality.IMPEDANCE
    known = {} if impedance else calibrated("servo", subject, folder).get("settings", {})
    if known:
        found |= {
            "delay": cell(round(known["delay"], 9), "ms", 1e3),
            "servo frequency": cell(known["servo_frequency"], "Hz"),
            "servo damping ratio": cell(known["servo_damping_ratio"], ""),
        }
    for name, sheet in stated(subject.spec, subject.clock).items():
        yield (name, sheet, found.get(name))
    yield stiffness(subject, folder) if impedance else lightest(subject, known, folder)


def tables(columns):
    """Return a table for each causality: a row for each figure, a column for each device.

    `columns` maps each subject to its figures, each a pair of data sheet and measurement, None if there is none.
    """
    lines = []
    for causality in Causality:
        subjects = [subject for subject in columns if subject.spec.causality is causality]
        figures = dict.fromkeys(name for subject in subjects for name in columns[subject])
        if subjects:
            lines += [f"| figure | {' | '.join(map(str, subjects))} |", f"|---|{'---|' * len(subjects)}"]
        for name in figures:
            pairs = (columns[subject].get(name, (None, None)) for subject in subjects)
            cells = [f"{sheet or '-'}; {found or '-'}" for sheet, found in pairs]
            lines += [f"| {name} | {' | '.join(cells)} |"]
        lines += [""] if subjects else []
    return "\n".join(lines)


def main(names, write=sys.stdout.write):
    """Print the tables of those devices."""
    before = os.getloadavg()[0]
    columns = {}
    for subject in SUBJECTS:
        if not names or subject.backend in names:
            with tempfile.TemporaryDirectory() as folder:
                columns[subject] = {name: (sheet, found) for name, sheet, found in rows_of(subject, Path(folder))}
    after = os.getloadavg()[0]
    write(f"{tables(columns)}\n{os.cpu_count()} processors; ")
    write(f"load average {before:.2f} when it began, {after:.2f} when it ended.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
