"""Every figure of every device's data sheet beside the one that is measured: the table of ``docs/data_sheets.md``.

``python -m tests.devices.data_sheets [DEVICE ...]`` prints it, all devices if none is named. Figures of emulated
devices are of this machine, emulation included, and follow its clock: nothing else should run meanwhile.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from devices import create_device
from haptics.clock import Clock
from haptics.device import Causality, DeviceSpec
from haptics.recording.recording import Recording
from tests.processes import NO_PICTURE, ROOT

PERIOD = 1e-3
SLOW, STROKES, PUSH = 6.0, 6.0, 2.0
"""How long each session is [s]."""

GENTLE = 0.005
"""Speed of the hand with which one step of an encoder is told from the next [m/s]."""

FAULTED = 4
"""Exit status of a session that a limit has ended: its recording counts."""

TOLD = 1e-9
"""What differs by less is the same position [m]."""

Cell = str | None
"""A number with its unit; None where there is none."""


@dataclass(frozen=True)
class Subject:
    """A device that is measured: its name in the table, backend, settings, and whether it needs a clock."""

    title: str
    backend: str
    settings: tuple[str, ...] = ()
    clock: str = "wall"

    @property
    def spec(self) -> DeviceSpec:
        """Its data sheet."""
        from apps.settings.config import parse_assignment

        table: dict[str, Any] = {}
        for text in self.settings:
            _, name, value = parse_assignment(text)
            *tables, last = name.split(".")
            place = table
            for part in tables:
                place = place.setdefault(part, {})
            place[last] = value
        return create_device(self.backend, table, clock=Clock(PERIOD)).spec


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


def session(subject: Subject, folder: Path, seconds: float, *hand: str) -> np.ndarray:
    """Run a session and return its rows that nothing but the element has decided."""
    model = "C" if subject.spec.causality is Causality.IMPEDANCE else "A"
    told = [word for text in (*subject.settings, *hand) for word in ("--set", text)]
    where = ("--device", subject.backend, "--model", model, "--record", str(folder), "--clock", subject.clock)
    answer = haptics("run", *where, "--duration", f"{seconds:g}", "--headless", *NO_PICTURE, *told)
    return Recording(Path(answer["recording"])).rows


# --- the figures -----------------------------------------------------------------------------------------------------


def ages(rows: np.ndarray) -> tuple[float, float]:
    """Return how old samples were: median, and the hundredth part that was older [s]."""
    found = rows["sample_age"][np.isfinite(rows["sample_age"])]
    middle, most = np.percentile(found, (50, 99))
    return float(middle), float(most)


def hand_over(rows: np.ndarray) -> float:
    """Return the median time from taking a sample until the force made of it was the device's [s]."""
    found = rows["sample_age"] + rows["write_time"]
    return float(np.median(found[np.isfinite(found)]))


def step(rows: np.ndarray) -> float:
    """Return the step of the position along the axis that moves most: the median of what it moves when it does [m]."""
    moves = np.abs(np.diff(rows["position"], axis=0))
    along = moves[:, int(np.argmax(moves.sum(axis=0)))]
    told = along[along > TOLD]
    return float(np.median(told)) if len(told) else math.nan


def residual(rows: np.ndarray, friction: float) -> float:
    """Return what the hand has to do more than `friction` while it slides slowly [N]; nan if nobody knows its force."""
    speeds = np.linalg.norm(rows["velocity"], axis=1)
    slides = (rows["sticking"] == 0) & (speeds > 0.5 * GENTLE) & np.isfinite(rows["hand_force"]).all(axis=1)
    if slides.sum() < 100:
        return math.nan
    along = np.sum(rows["hand_force"][slides] * rows["velocity"][slides], axis=1) / speeds[slides]
    return float(np.median(along) - friction)


def fastest(rows: np.ndarray) -> float:
    """Return the greatest speed of the reference [m/s]."""
    return float(np.linalg.norm(np.diff(rows["command"], axis=0), axis=1).max() / PERIOD)


def strongest(rows: np.ndarray) -> float:
    """Return the greatest force that was commanded [N]."""
    return float(np.linalg.norm(rows["command"], axis=1).max())


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
        return found | own | {"least friction": cell(residual(slow, 1.0), "N")}
    hard = session(subject, folder / "hard", PUSH, *push(20.0))
    return found | {"largest speed": cell(fastest(hard), "m/s")} | servo(subject, folder)


def servo(subject: Subject, folder: Path) -> dict[str, Cell]:
    """Return what `haptics calibrate servo` finds."""
    told = [word for text in subject.settings for word in ("--set", text)]
    where = ("--device", subject.backend, "--out", str(folder / "servo.toml"), "--record", str(folder))
    found = haptics("calibrate", "servo", *where, *told)["settings"]
    return {
        "delay": cell(found["delay"], "ms", 1e3),
        "servo frequency": cell(found["servo_frequency"], "Hz"),
        "servo damping ratio": cell(found["servo_damping_ratio"], ""),
    }


def lines(subject: Subject, found: Mapping[str, Cell]) -> Iterator[str]:
    """Yield the lines of a device in the table, given what was measured."""
    for name, sheet in stated(subject.spec, subject.clock).items():
        yield f"| {subject.title} | {name} | {sheet or 'not stated'} | {found.get(name) or 'not seen from here'} |"


def main(names: list[str], write: Callable[[str], object] = sys.stdout.write) -> int:
    """Print the table of those devices."""
    write("| device | figure | data sheet | measured |\n|---|---|---|---|\n")
    for subject in SUBJECTS:
        if not names or subject.backend in names:
            with tempfile.TemporaryDirectory() as folder:
                for line in lines(subject, measured(subject, Path(folder))):
                    write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
