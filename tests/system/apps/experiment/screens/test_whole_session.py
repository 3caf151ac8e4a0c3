"""A session run by a program that presses keys and moves the mouse, from the instructions to the last trial."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import read_journal
from apps.experiment.screens.participant.layout import arrange
from apps.opengl.plane import Plane
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.conftest import MISSING_QT
from tests.processes import finish, program, until

pytestmark = [
    pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT),
    pytest.mark.wall_clock,
]

DESIGN = """
[experiment]
name = "by-hand"
task = "discrimination"

[session]
model = "C"

[device]
name = "virtual-joystick"

[hand]
name = "mouse"

[law]
name = "coulomb"

[stimulus]
axis = "law.force"

[[conditions]]
name = "1 N"
reference = 1.0

[procedure]
kind = "constant"
levels = [0.5, 2.0]
repeats = 2

[catch]
easy = 0.0

[trials]
interval = 0.5
block = 2
rest = 1.0
feedback = true
late_ticks = 1.0                    # a busy machine must not make a session longer
longest_gap = 1.0

[exploration]
start = [-0.03, 0.0]
reach = 0.01
pacing = "both"

[texts]
instructions = ["Move, feel, and say which of the two resisted more.", "Press 1 or 2."]

[screen]
full_screen = false
width = 1000
height = 700
"""


class Person:
    """Moves the pointer over the participant's window, and presses keys."""

    def __init__(self, screen: Screen, file: Path) -> None:
        self._screen = screen
        spec = read_design(file).session.spec
        self._plane = Plane(arrange(1000, 700).field, (spec.workspace_min, spec.workspace_max))
        self.window = screen.window("haptics: participant")
        self.other = screen.window("haptics: experimenter")
        screen.xdotool("windowraise", self.window, "windowfocus", "--sync", self.window)

    def pixel(self, x: float, y: float) -> str:
        across, up = self._plane.to_window(x, y)
        return f"mousemove {round(across)} {round(700 - up)}\n"

    def feel(self) -> None:
        """Rest in the start box, and move to and fro."""
        sway = [0.03 * np.cos(0.2 * step) for step in range(32)]
        strokes = "".join(self.pixel(-x, 0.2 * abs(0.03 - x)) + "sleep 0.016\n" for x in sway)
        self._screen.xdotool(script=f"{self.pixel(-0.03, 0.0)}sleep 0.5\n{strokes}")

    def press(self, *keys: str) -> None:
        self._screen.xdotool("key", *keys)

    def write(self, words: str) -> None:
        """Write a note on the experimenter's screen."""
        self._screen.xdotool("windowraise", self.other, "windowfocus", "--sync", self.other, "sleep", "0.3")
        self._screen.xdotool("type", "--delay", "30", words)
        self._screen.xdotool("key", "Return")
        self._screen.xdotool("windowraise", self.window, "windowfocus", "--sync", self.window)


@contextmanager
def session(screen: Screen, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Person]]:
    file = folder / "by-hand.toml"
    file.write_text(DESIGN)
    arguments = ("-m", "apps", "experiment", "run", str(file), "--participant", "P01", "--out", str(folder), "--json")
    pipe = subprocess.PIPE
    with program(*arguments, env=screen.environment, stdout=pipe, stderr=pipe, cwd=folder) as process:
        try:
            yield process, Person(screen, file)
        except BaseException as error:
            process.kill()
            raise AssertionError(process.communicate()[1]) from error


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the journal so far."""
    found = list(folder.glob("sub-P01/ses-01/*_journal.jsonl"))
    return [dict(record) for record in read_journal(found[0]).records] if found else []


def of(kind: str, folder: Path) -> list[dict[str, Any]]:
    return [record for record in records(folder) if record["record"] == kind]


def test_from_the_instructions_to_the_last_trial(tmp_path: Path) -> None:
    with virtual_screen() as screen, session(screen, tmp_path) as (process, person):
        until(lambda: person.press("space") or of("trial_start", tmp_path), "the instructions did not end", 60, 0.5)
        for wanted, answer in enumerate(("1", "2", "1", "2"), 1):
            end = time.monotonic() + 60
            while len(of("response", tmp_path)) < wanted:
                assert time.monotonic() < end, (records(tmp_path)[-3:], process.poll())
                person.feel()
                person.press(answer)
            if wanted == 1:
                person.write("a note, said aloud")
            if wanted == 2:
                until(lambda: person.press("space") or len(of("block_start", tmp_path)) > 1, "no second block", 60, 0.5)
            if wanted == 3:
                person.press("Escape")
                until(lambda: any(one["name"] == "pause" for one in of("event", tmp_path)), "Esc made no pause")
                person.press("Escape")
        answer = finish(process)
    assert answer["reason"] == "completed"
    assert answer["trials"] == 4
    responses = of("response", tmp_path)
    assert [(one["response"], one["source"], one["key"]) for one in responses] == [
        (answer, "key", answer) for answer in ("1", "2", "1", "2")
    ]
    assert all(0 < one["reaction_time_s"] < 60 for one in responses)
    assert [note["text"] for note in of("note", tmp_path)] == ["a note, said aloud"]
    names = [one["name"] for one in of("event", tmp_path)]
    assert {"instructions", "break", "pause"} <= set(names)
    for block in (1, 2):
        folder = tmp_path / "sub-P01" / "ses-01" / "blocks" / f"block-{block:02d}"
        assert json.loads((folder / "recording.json").read_text())["state"] == "complete"
        rows = np.load(folder / "ticks.npy")
        felt = rows[rows["marker"] % 10 > 0]
        assert np.ptp(felt["position"][:, 0]) > 0.03
