"""Every figure of every device's data sheet beside the one that is measured: the table of ``docs/data_sheets.md``.

``python -m tests.devices.data_sheets [DEVICE ...]`` prints it, all devices if none is named. Figures of emulated
devices are of this machine, emulation included, and follow its clock: nothing else should run meanwhile. The last line
says how busy the machine was.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.motions import Mover
from devices import create_device
from haptics.clock import Clock
from haptics.design.advice import plain
from haptics.device import Causality, DeviceSpec
from haptics.recording.recording import Recording
from tests.devices.boundaries import (
    FRICTION,
    LOUD,
    ROUND,
    advised_mass,
    advised_stiffness,
    circle,
    fastest_driven,
    hum,
    least_mass,
)
from tests.devices.figures import GENTLE, PERIOD, ages, fastest, hand_over, residual, step, strongest
from tests.processes import NO_PICTURE, ROOT

SLOW, STROKES, PUSH = 6.0, 6.0, 2.0
"""How long each session is [s]."""

FAULTED = 4
"""Exit status of a session that a limit has ended: its recording counts."""

ATTEMPTS = 3
"""A calibration that a limit has ended, as it may on a machine that stands still for a while, is tried so often."""

STIFFEST, LEAST_MASS = "largest stiffness, by advice", "least virtual mass, by advice"
"""Names of the lines that have advice in place of the data sheet."""

Cell = str | None
"""A number with its unit; None where there is none."""

NOBODY = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]]}
"""The hand of a handle that is let alone."""


@dataclass(frozen=True)
class Subject:
    """A device that is measured: its name in the table, backend, settings, and whether it needs a clock."""

    title: str
    backend: str
    settings: tuple[str, ...] = ()
    clock: str = "wall"

    def __str__(self) -> str:
        """Its title."""
        return self.title

    @property
    def table(self) -> dict[str, Any]:
        """Its settings."""
        from apps.settings.config import parse_assignment

        table: dict[str, Any] = {}
        for text in self.settings:
            _, name, value = parse_assignment(text)
            *tables, last = name.split(".")
            place = table
            for part in tables:
                place = place.setdefault(part, {})
            place[last] = value
        return table

    @property
    def spec(self) -> DeviceSpec:
        """Its data sheet."""
        return create_device(self.backend, self.table, clock=Clock(PERIOD)).spec

    @property
    def words(self) -> list[str]:
        """What a command is told of it, besides its name."""
        return ["--clock", self.clock, *(word for text in self.settings for word in ("--set", text))]


EMULATED = ("device.emulated=true",)
SUBJECTS = (
    Subject("virtual-joystick", "virtual-joystick", clock="off"),
    Subject("virtual-arm", "virtual-arm", clock="off"),
    Subject("pid-joystick, emulated", "pid-joystick", EMULATED),
    Subject("pantograph, emulated", "pantograph", EMULATED),
    Subject("inverse3, emulated", "inverse3", EMULATED),
    Subject("arm, emulated, text", "arm", (*EMULATED, "device.motors.protocol=text")),
    Subject("arm, emulated, CAN", "arm", (*EMULATED, "device.motors.protocol=can")),
)


def haptics(*arguments: str) -> dict[str, Any]:
    """Run a command; return its answer."""
    done = subprocess.run(
        [sys.executable, "-m", "apps", *arguments, "--json"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if done.returncode not in (0, FAULTED):
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def calibrated(what: str, subject: Subject, folder: Path, *told: str) -> dict[str, Any]:
    """Calibrate something of a device; return the answer of the command, empty if a limit ended it every time."""
    where = ("--device", subject.backend, "--out", str(folder / f"{what}.toml"), "--record", str(folder))
    answer: dict[str, Any] = {}
    for _ in range(ATTEMPTS):
        answer = haptics("calibrate", what, *where, *told, *subject.words)
        if "out" in answer:
            return answer
    sys.stderr.write(f"{subject}: {what} was not calibrated: {answer}\n")
    return {}


def session(subject: Subject, folder: Path, seconds: float, *hand: str) -> np.ndarray:
    """Run a session and return its rows that nothing but the element has decided."""
    model = "C" if subject.spec.causality is Causality.IMPEDANCE else "A"
    told = [*subject.words, *(word for text in hand for word in ("--set", text))]
    where = ("--device", subject.backend, "--model", model, "--record", str(folder))
    answer = haptics("run", *where, "--duration", f"{seconds:g}", "--headless", *NO_PICTURE, *told)
    return Recording(Path(answer["recording"])).rows


# --- the table -------------------------------------------------------------------------------------------------------


def cell(value: float | None, unit: str, scale: float = 1.0) -> Cell:
    """Return a number with its unit, None for none."""
    if value is None or not math.isfinite(value):
        return None
    return f"{scale * value:.3g} {unit}".rstrip()


def strokes(speed: float) -> tuple[str, ...]:
    """Return the settings of a steady hand."""
    return (f"hand.speed={speed:g}", "hand.tremor=0", "hand.rest=0", "hand.pause=0")


def push(force: float) -> tuple[str, ...]:
    """Return the settings of a hand that pushes along x."""
    script = f"[[0,0,0],[0.3,{force:g},0],[99,{force:g},0]]"
    return "hand.name=scripted-force", f"hand.script={script}"


def stated(spec: DeviceSpec, clock: str) -> dict[str, Cell]:
    """Return what a data sheet says of each figure, None where it says nothing."""
    found: dict[str, Cell] = {}
    if clock == "wall":
        found["sample age, median"] = None
        found["sample age, 99 %"] = f"at most {cell(spec.max_sample_age, 'ms', 1e3)}"
    found["position resolution"] = cell(spec.position_resolution, "um", 1e6)
    found["delay"] = cell(spec.delay, "ms", 1e3)
    if spec.causality is Causality.IMPEDANCE:
        found["least friction"] = cell(spec.least_friction, "N")
        found["largest force"] = cell(spec.max_force, "N")
        found["largest speed"] = cell(spec.max_speed, "m/s")
    else:
        found["largest speed"] = cell(spec.max_speed, "m/s")
        found["servo frequency"] = cell(spec.servo_frequency, "Hz")
        found["servo damping ratio"] = cell(spec.servo_damping_ratio, "")
    return found


def measured(subject: Subject, folder: Path) -> dict[str, Cell]:
    """Measure the figures of a device."""
    spec = subject.spec
    moving = session(subject, folder / "strokes", STROKES, *strokes(0.1))
    slow = session(subject, folder / "slow", SLOW, *strokes(GENTLE), "law.force=1")
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


@dataclass(frozen=True)
class Row:
    """A line of the table: the figure, what the data sheet or advice says, and what was measured."""

    name: str
    sheet: Cell
    measured: Cell


def stiffness(subject: Subject, folder: Path) -> Row:
    """Return above which stiffness a contact swings: as advice says, and as `haptics calibrate device` measures."""
    told = "--set", "autotune.axes=x", "--set", "autotune.pushes=20"
    answer = calibrated("device", subject, folder, *told)
    if not answer:
        return Row(STIFFEST, None, None)
    found = answer["axis"]["x"]["boundary"]
    damping, boundary = found["damping_ns_per_m"], found.get("stiffness_n_per_m")
    advised = advised_stiffness(subject.spec, damping)
    sheet = None if advised is None else f"{plain(advised)} N/m with {plain(damping)} N s/m"
    held = found.get("stable_stiffness_n_per_m", 0.0)
    return Row(STIFFEST, sheet, f"{plain(boundary)} N/m" if boundary else f"more than {plain(held)} N/m")


def lightest(subject: Subject, known: Mapping[str, Any], folder: Path) -> Row:
    """Return below which virtual mass an arm shakes: as advice says, and in sessions.

    Advice goes by what is known of the servo where the data sheet states no least mass.
    """
    spec = subject.spec if subject.spec.least_mass else replace(subject.spec, **known)
    hand = circle(folder, spec)

    def shakes(mass: float) -> bool:
        what = f"law.force={FRICTION:g}", f"element.mass={mass:.4g}"
        return hum(session(subject, folder / f"{mass:.4g}", ROUND, *hand, *what)) > LOUD

    return Row(LEAST_MASS, cell(advised_mass(spec), "kg"), least_mass(shakes))


def rows_of(subject: Subject, folder: Path) -> Iterator[Row]:
    """Yield all lines of a device."""
    found, impedance = measured(subject, folder), subject.spec.causality is Causality.IMPEDANCE
    known = {} if impedance else calibrated("servo", subject, folder).get("settings", {})
    if known:
        found |= {
            "delay": cell(round(known["delay"], 9), "ms", 1e3),
            "servo frequency": cell(known["servo_frequency"], "Hz"),
            "servo damping ratio": cell(known["servo_damping_ratio"], ""),
        }
    for name, sheet in stated(subject.spec, subject.clock).items():
        yield Row(name, sheet, found.get(name))
    yield stiffness(subject, folder) if impedance else lightest(subject, known, folder)


def line(subject: Subject, row: Row) -> str:
    """Return a line of the table."""
    return f"| {subject.title} | {row.name} | {row.sheet or 'not stated'} | {row.measured or 'not seen from here'} |"


def busy() -> str:
    """Return how busy the machine is: its load average over the last minute."""
    return f"{os.getloadavg()[0]:.2f}"


def main(names: list[str], write: Callable[[str], object] = sys.stdout.write) -> int:
    """Print the table of those devices."""
    before = busy()
    write("| device | figure | data sheet | measured |\n|---|---|---|---|\n")
    for subject in SUBJECTS:
        if not names or subject.backend in names:
            with tempfile.TemporaryDirectory() as folder:
                for row in rows_of(subject, Path(folder)):
                    write(f"{line(subject, row)}\n")
    write(f"\n{os.cpu_count()} processors; load average {before} when it began, {busy()} when it ended.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
