"""Calibrations: in this process, as the command line does it, and by the wall clock in a separate process."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any

from apps.cli import main
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from tests.processes import Application, device_log, written

VERTICAL = ("--set=device.arm.gravity=9.8", "--set=device.arm.handle_mass=0.3")
SLOWLY = ("--set=poses.columns=3", "--set=poses.rows=2", "--set=poses.rounds=1")


def calibrate(capsys, *arguments):
    """Return the answer of ``haptics calibrate ... --json``, which must succeed."""
    capsys.readouterr()
    status = main(["calibrate", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    assert status == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def refusal(capsys, *arguments):
    """Return the error of ``haptics calibrate ...``, which must be one line."""
    capsys.readouterr()
    assert main(["calibrate", *map(str, arguments), "--json"]) == 2
    out, err = capsys.readouterr()
    assert "error" in json.loads(out)
    (line,) = err.strip().splitlines()
    return line


def refuses_to_move(capsys, folder, *arguments):
    """Return the error of a command that is refused before it moves or writes anything."""
    out, record = folder / "own.toml", folder / "recordings"
    line = refusal(capsys, *arguments, f"--out={out}", f"--record={record}")
    assert not record.exists()
    assert not out.exists()
    return line


QUICK = [f"--set=excitation.{setting}" for setting in ("speeds=4", "rounds=2", "strokes=1", "stroke_time=0.25")]
EMULATED = ("--set=device.emulated=true", "--set=device.emulator=arduino")
STICK = ["--travel-x=0.14", "--travel-y=0.12", "--yes", *EMULATED]
COMMANDS = {
    "joystick": ["friction", "--device=virtual-joystick", *QUICK],
    "joints": ["friction", "--device=virtual-arm", *QUICK],
    "poses": ["arm", "--device=virtual-arm", "--only=handle"],
    "pushes": ["joystick", *STICK, "--stated-max-force=6"],
}
"""Calibrations that move the device."""

MOVING = 1500
"""Ticks after which each of them is in the middle of a motion."""


@contextmanager
def calibrating(motion, folder, *more):
    """Start a calibration by the wall clock; yield it and the folder of its recording."""
    clock = [] if "--yes" in COMMANDS[motion] else ["--clock=wall"]
    arguments = ["-m", "apps", "calibrate", *COMMANDS[motion], *clock, f"--record={folder / 'recordings'}", *more]
    with written(folder, *arguments, f"--out={folder / 'own.toml'}", cwd=folder) as process:
        yield Application(process, folder), folder / "recordings"


def is_safe(recording):
    """Return whether the last command was safe: no force, or a constant reference."""
    commands = device_log(recording)["command"]
    if Recording(recording).metadata["device"]["causality"] == "impedance":
        return not commands[-1].any()
    return bool((commands[-1] == commands[-2]).all())


def whole(recording):
    """Return a recording after it has been replayed."""
    found = Recording(recording)
    assert verify(found).mismatches == 0
    assert len(found.rows) > MOVING
    return found
