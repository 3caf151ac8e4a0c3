"""A session with a person, on a virtual screen: from the instructions to the last page, by the keyboard alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.live import attended
from apps.experiment.engine.live.attended import expected_trials, require_display, require_screen
from apps.experiment.journal import read_journal, replay, sessions_below
from apps.experiment.screens import Cannot
from apps.front_ends.several import FrontEnds
from haptics.errors import ConfigurationError
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.screens.test_audience import Heard
from tests.apps.screen import WHY_NOT, Screen, virtual_screen
from tests.processes import ROOT

LIVE = (
    WEBER.replace("block = 5", "block = 3\nrest = 0.5\nlate_ticks = 1.0\nlongest_gap = 0.9")
    .replace("{ most_trials = 3 }", "{}")
    .replace("easy = 0.2", "easy = 0.0")
    .replace("most_trials = 4", "most_trials = 3")
    + '\n[screen]\nfull_screen = false\n\n[texts]\ninstructions = ["First page.", "Second page."]\nend = "Thank you."\n'
)


def test_without_a_display_a_person_is_not_begun_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=r"no display.*--observer simulated"):
        require_display()


def test_how_many_trials_there_will_be(tmp_path: Path) -> None:
    assert expected_trials(read_design(changed(tmp_path))) is None, "of staircases nobody knows"
    constant = WEBER.replace("{ most_trials = 3 }", "{}").replace('kind = "staircase"', 'kind = "constant"')
    lines = [
        line for line in constant.splitlines() if not line.startswith(("start = 0", "mini", "maxi", "reve", "most_"))
    ]
    text = "\n".join(lines).replace('kind = "constant"', 'kind = "constant"\nlevels = [0.1, 0.2]\nrepeats = 4')
    assert expected_trials(read_design(changed(tmp_path, text=text + "\n"))) == 20, "16 and a fifth of all easy ones"


def test_the_hand_of_a_block_is_the_mouse_over_the_screen_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attended, "LiveStage", lambda config, *_: config)
    design = read_design(changed(tmp_path))
    config, nobody = design.config(design.conditions[0], 1.0), SimpleNamespace()
    for mouse, target in ((None, None), (SimpleNamespace(path="/the/mouse"), "/the/mouse")):
        make: Any = attended._stage(nobody, mouse)  # type: ignore[arg-type]
        found = make(config, tmp_path, print).device_settings
        assert found["hand"].get("target") == target
        assert {**found["hand"], "target": None} == {**config.device_settings["hand"], "target": None}


class Refusing(Heard):
    """A participant's screen that cannot be shown: it says why, and ends."""

    holds_key = True

    def __init__(self) -> None:
        super().__init__()
        self.connection, self.end = multiprocessing.Pipe()  # type: ignore[misc]

    def messages(self) -> list[Any]:
        told, self.open = ([Cannot("window", "no OpenGL here: install it")] if self.open else []), False
        return told


def test_a_screen_that_cannot_be_shown_says_why_in_its_own_words() -> None:
    fronts, front = FrontEnds(), Refusing()
    fronts.add(front)
    with pytest.raises(ConfigurationError, match="no OpenGL here: install it"):
        require_screen(fronts, front)


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    with virtual_screen() as found:
        yield found


def begin(screen: Screen, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "apps", "experiment", *arguments, "--json"]
    return subprocess.Popen(command, env=screen.environment, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def press_until(screen: Screen, running: subprocess.Popen[str], trials: int, out: Path) -> None:
    """Press keys that go on and answer, until the session is over or so many trials are answered."""
    until = time.monotonic() + 180.0
    while running.poll() is None and time.monotonic() < until:
        places = sessions_below(out) if list(out.glob("sub-*/ses-*/*_journal.jsonl")) else []
        if places and len(replay(read_journal(places[0].journal).records).answered) >= trials:
            return
        screen.xdotool(script="key space\nsleep 0.2\nkey 2\n")
        time.sleep(0.2)
    assert running.poll() is not None, "it neither ended nor went on"


def children(process: int) -> list[tuple[int, str]]:
    """Return the processes below one, with what they were started as."""
    tasks = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [(int(one), Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode()) for one in tasks]


@pytest.mark.timeout(600)
def test_with_every_process_of_it_killed_in_turn_a_session_comes_to_its_end(screen: Screen, tmp_path: Path) -> None:
    file, out = changed(tmp_path, text=LIVE), tmp_path / "out"
    running = begin(screen, "run", str(file), "--participant", "P01", "--out", str(out))
    for trials, victim in enumerate(("servo", "screen", "application"), 1):
        press_until(screen, running, trials, out)
        spawned = [one for one, command in children(running.pid) if "spawn_main" in command]
        # the participant's screen is spawned first, the servo of the block last
        os.kill({"servo": spawned[-1], "screen": spawned[0], "application": running.pid}[victim], signal.SIGKILL)
        _, words = running.communicate(timeout=60)
        assert running.returncode == (-signal.SIGKILL if victim == "application" else 4), words
        (place,) = sessions_below(out)
        assert len(replay(read_journal(place.journal).records).answered) >= trials
        running = begin(screen, "resume", str(place.folder))
    press_until(screen, running, 10**6, out)
    answer, words = running.communicate(timeout=60)
    assert running.returncode == 0, words
    result = json.loads(answer)
    assert result["trials"] == 6 and result["simulated"] is False
    state = replay(read_journal(place.journal).records)
    assert sorted(state.answered) == [1, 2, 3, 4, 5, 6] and state.end is not None
    names = [one["name"] for one in state.events]
    assert (names.count("resumed"), names.count("instructions"), names.count("screen-lost")) == (3, 4, 1)
    assert "break" in names
    for attempt in state.answered.values():
        assert attempt.response is not None
        assert (attempt.response["source"], attempt.response["response"]) == ("key", "2")
        assert attempt.response["reaction_time_s"] > 0.0
    for attempt in state.attempts:
        assert attempt.end is not None or state.attempts_at(attempt.trial) > attempt.number
