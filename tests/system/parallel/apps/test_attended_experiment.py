"""Experiments with a participant: keyboard and mouse on a virtual screen, from the instructions to the last trial."""

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.journal import read_journal, replay, sessions_below
from apps.experiment.screens.drawing import Layout
from apps.experiment.screens.messages import Cannot
from apps.experiment.session.live import expected_trials, require_display, require_screen
from apps.front_ends.front_end import FrontEnds
from apps.opengl.plane import Plane
from haptics.errors import ConfigurationError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.screen import WHY_NOT, virtual_screen
from tests.apps.session.persons import Person
from tests.conftest import MISSING_QT
from tests.processes import ROOT, finish, kill, program, spawned_by, until

LIVE = (
    WEBER.replace("block = 5", "block = 3\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9")
    .replace("{ most_trials = 3 }", "{}")
    .replace("easy = 0.2", "easy = 0.0")
    .replace("most_trials = 4", "most_trials = 3")
    + '\n[screen]\nfull_screen = false\n\n[texts]\ninstructions = ["First page.", "Second page."]\nend = "Thank you."\n'
)


def test_session_with_a_person_needs_a_display(tmp_path, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=r"no display.*--observer simulated"):
        require_display()


def test_number_of_trials_is_expected_for_constant_stimuli(tmp_path):
    assert expected_trials(read_design(changed(tmp_path))) is None, "unknown for staircases"
    constant = WEBER.replace("{ most_trials = 3 }", "{}").replace('kind = "staircase"', 'kind = "constant"')
    left_out = ("start = 0", "mini", "maxi", "reve", "most_")
    lines = [line for line in constant.splitlines() if not line.startswith(left_out)]
    text = "\n".join(lines).replace('kind = "constant"', 'kind = "constant"\nlevels = [0.1, 0.2]\nrepeats = 4')
    assert expected_trials(read_design(changed(tmp_path, text=text + "\n"))) == 20, "16, and a fifth of all are easy"


def test_screen_that_cannot_be_shown_gives_its_reason(monkeypatch):
    monkeypatch.setattr(FrontEnds, "connections", ())
    fronts, front = FrontEnds(), Person(Cannot("window", "no OpenGL here: install it"))
    front.dies = True
    fronts.add(front)
    with pytest.raises(ConfigurationError, match="no OpenGL here: install it"):
        require_screen(fronts, front)


def begin(screen, *arguments):
    pipe, words = subprocess.PIPE, ("-m", "apps", "experiment", *arguments, "--json")
    return program(*words, env=screen.environment, stdout=pipe, stderr=pipe, cwd=ROOT)


def press_until(screen, running, trials, out):
    """Press keys that continue and answer until the session has ended or a number of trials is answered."""
    until = time.monotonic() + 180.0
    while running.poll() is None and time.monotonic() < until:
        places = sessions_below(out) if list(out.glob("sub-*/ses-*/*_journal.jsonl")) else []
        if places and len(replay(read_journal(places[0].journal).records).counted_attempts) >= trials:
            return
        screen.xdotool(script="key space\nsleep 0.2\nkey 2\n")
        time.sleep(0.2)
    assert running.poll() is not None, "the session neither ended nor continued"


@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
def test_attended_session_with_every_process_killed_in_turn_is_completed(screen, tmp_path):
    file, out = changed(tmp_path, text=LIVE), tmp_path / "out"
    command = ("run", str(file), "--participant", "P01", "--out", str(out))
    for trials, victim in enumerate(("servo", "screen", "application"), 1):
        with begin(screen, *command) as running:
            press_until(screen, running, trials, out)
            assert running.poll() is None, kill(running)[1]
            spawned = spawned_by(running.pid)
            # the participant's screen is spawned first, the servo of the block last
            os.kill({"servo": spawned[-1], "screen": spawned[0], "application": running.pid}[victim], signal.SIGKILL)
            _, words = running.communicate(timeout=60)
            assert running.returncode == (-signal.SIGKILL if victim == "application" else 4), words
        (place,) = sessions_below(out)
        assert len(replay(read_journal(place.journal).records).counted_attempts) >= trials
        command = ("resume", str(place.folder))
    with begin(screen, *command) as running:
        press_until(screen, running, 10**6, out)
        result = finish(running)
    assert result["trials"] == 6 and result["simulated"] is False
    state = replay(read_journal(place.journal).records)
    assert sorted(state.counted_attempts) == [1, 2, 3, 4, 5, 6] and state.end is not None
    names = [one["name"] for one in state.events]
    assert (names.count("resumed"), names.count("instructions"), names.count("screen-lost")) == (3, 4, 1)
    for attempt in state.counted_attempts.values():
        assert attempt.response is not None
        assert (attempt.response["source"], attempt.response["response"]) == ("key", "2")
        assert attempt.response["reaction_time_s"] > 0.0
    for attempt in state.attempts:
        assert attempt.end is not None or state.attempts_at(attempt.trial) > attempt.number


DESIGN = """
experiment = { name = "by-hand", task = "discrimination" }
session = { model = "C" }
device = { name = "virtual-joystick" }
hand = { name = "mouse" }
law = { name = "coulomb" }
stimulus = { axis = "law.force" }
conditions = [{ name = "1 N", reference = 1.0 }]
procedure = { kind = "constant", levels = [0.5, 2.0], repeats = 2 }
catch = { easy = 0.0 }
# no repeated trials on a busy machine: late_ticks and longest_gap
trials = { interval = 0.5, block = 2, rest = 1.0, feedback = true, late_ticks = 1.0, longest_gap = 1.0 }
exploration = { start = [-0.03, 0.0], reach = 0.01, pacing = "both" }
texts = { instructions = ["Move, feel, and say which of the two resisted more.", "Press 1 or 2."] }
screen = { full_screen = false, width = 1000, height = 700 }
"""


class Participant:
    """Moves the pointer over the participant's window, and presses keys."""

    def __init__(self, screen, file):
        self._screen = screen
        spec = read_design(file).session.spec
        self._plane = Plane(Layout(1000, 700).field, (spec.workspace_min, spec.workspace_max))
        self.window = screen.window("haptics: participant")
        self.other = screen.window("haptics: experimenter")
        screen.xdotool("windowraise", self.window, "windowfocus", "--sync", self.window)

    def pixel(self, x, y):
        across, up = self._plane.to_window(x, y)
        return f"mousemove {round(across)} {round(700 - up)}\n"

    def feel(self):
        """Rest in the start box, and move to and fro."""
        sway = [0.03 * np.cos(0.2 * step) for step in range(32)]
        strokes = "".join(self.pixel(-x, 0.2 * abs(0.03 - x)) + "sleep 0.016\n" for x in sway)
        self._screen.xdotool(script=f"{self.pixel(-0.03, 0.0)}sleep 0.5\n{strokes}")

    def press(self, *keys):
        self._screen.xdotool("key", *keys)

    def write(self, words):
        """Write a note on the experimenter's screen."""
        self._screen.xdotool("windowraise", self.other, "windowfocus", "--sync", self.other, "sleep", "0.3")
        self._screen.xdotool("type", "--delay", "30", words)
        self._screen.xdotool("key", "Return")
        self._screen.xdotool("windowraise", self.window, "windowfocus", "--sync", self.window)


@contextmanager
def session(screen, folder):
    file = folder / "by-hand.toml"
    file.write_text(DESIGN)
    arguments = ("-m", "apps", "experiment", "run", str(file), "--participant", "P01", "--out", str(folder), "--json")
    pipe = subprocess.PIPE
    with program(*arguments, env=screen.environment, stdout=pipe, stderr=pipe, cwd=folder) as process:
        try:
            yield process, Participant(screen, file)
        except BaseException as error:
            raise AssertionError(kill(process)[1]) from error


def records(folder):
    """Return the records of the journal."""
    found = list(folder.glob("sub-P01/ses-01/*_journal.jsonl"))
    return [dict(record) for record in read_journal(found[0]).records] if found else []


def of(kind, folder):
    return [record for record in records(folder) if record["record"] == kind]


@pytest.mark.skipif(bool(WHY_NOT or MISSING_QT), reason=WHY_NOT or MISSING_QT)
@pytest.mark.wall_clock
def test_session_by_hand_runs_from_the_instructions_to_the_last_trial(tmp_path):
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
