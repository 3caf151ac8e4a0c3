"""Messages to the screens of participant and experimenter, and parts of the screens that need no display."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.experiment.design import read_design
from apps.experiment.screens.display import Display
from apps.experiment.screens.drawing import Layout, pacing_share, turns
from apps.experiment.screens.messages import Certificate, Outcome, Pacing, Progress, Show
from apps.experiment.screens.sound import RATE, part_of, pink_noise, samples, tones
from apps.experiment.sequence import Participant, TrialSequence
from apps.experiment.settings import ScreenSettings
from apps.experiment.trial import Answer
from haptics.errors import ConfigurationError
from tests.apps.experiment.designs import changed


class Heard:
    """A front end that records its messages."""

    open, holds_key, connection = True, False, None

    def __init__(self):
        self.told: list[Any] = []

    def send(self, message):
        self.told.append(message)

    def messages(self):
        return []

    def close(self):
        self.open = False

    def last(self, kind):
        return next(message for message in reversed(self.told) if isinstance(message, kind))


def begin(design, trials=None, practised=()):
    participant, experimenter = Heard(), Heard()
    told = {"code": "P01", "session": 1, "blocks": 2, "trials": trials, "practised": practised}
    display = Display(design, participant, experimenter, **told)
    plan = TrialSequence(design, Participant("P01", 1, 0, 7)).next()
    return display, participant, experimenter, plan


def present(display, plan):
    """Present a trial and its answer."""
    for number in (0, 1):
        display.park(plan, number)
        display.interval(plan, number)
        display.gap(plan, number)
    display.prompt(plan)
    display.ended(plan, 1, True, (), Answer("2", 0.8, 5000, "key", "2"))


def test_trial_is_shown_to_participant_and_experimenter(tmp_path):
    display, participant, experimenter, plan = begin(read_design(changed(tmp_path)))
    present(display, plan)
    shows = [message for message in participant.told if isinstance(message, Show)]
    kinds = [(show.kind, show.interval, show.of) for show in shows]
    trial = [(kind, number, 2) for number in (1, 2) for kind in ("park", "interval", "gap")]
    assert kinds == [*trial, ("response", 0, 2)]
    assert [(choice.key, choice.words) for choice in shows[-1].keys] == [("1", "first"), ("2", "second")]
    progress, outcome = experimenter.last(Progress), experimenter.last(Outcome)
    assert (progress.trial, progress.level, progress.phase) == (plan.trial, plan.level, "waiting for the answer")
    assert (outcome.response, outcome.reaction_time, outcome.correct) == ("2", 0.8, True)
    assert not any("level" in str(dataclasses.asdict(show)) for show in shows)


def test_experimenter_sees_the_timing_certificate(tmp_path):
    display, participant, experimenter, _ = begin(read_design(changed(tmp_path)))
    display.show_interval(2000, 0, 1.2e-3, ())
    told = {one.name: one for one in experimenter.last(Certificate).figures}
    verdicts = {name: one.verdict for name, one in told.items()}
    assert verdicts.pop("intervals") == "" and set(verdicts.values()) == {"good"}
    assert set(verdicts) == {"repeated", "late ticks in intervals", "longest gap"}
    display.show_interval(2000, 8, 9e-3, ("late ticks", "gap between ticks"))
    told = {one.name: one for one in experimenter.last(Certificate).figures}
    assert {one.verdict for name, one in told.items() if name != "intervals"} == {"doubtful"}
    assert (told["intervals"].value, told["repeated"].value) == ("2", "50 %")
    assert (told["late ticks in intervals"].value, told["longest gap"].value) == ("0.2 %", "9 ms")
    assert not any(isinstance(message, Certificate) for message in participant.told)


def test_blind_session_hides_condition_and_level(tmp_path):
    design = read_design(changed(tmp_path))
    design = dataclasses.replace(design, experiment=dataclasses.replace(design.experiment, blind=True))
    display, _, experimenter, plan = begin(design)
    present(display, plan)
    for message in experimenter.told:
        if isinstance(message, Progress | Outcome):
            assert (message.kind, message.condition, message.track, message.level) == ("", "", None, None)
    assert experimenter.last(Outcome).correct is None
    assert experimenter.last(Outcome).response == "2"


def test_remaining_time_follows_the_pace(tmp_path, monkeypatch):
    display, participant, experimenter, plan = begin(read_design(changed(tmp_path)), trials=20)
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    display.park(dataclasses.replace(plan, kind="practice", trial=1), 0)
    for trial in range(2, 13):
        now += 7.0
        display.park(dataclasses.replace(plan, kind="test", trial=trial), 0)
    assert experimenter.last(Progress).remaining == pytest.approx(10 * 7.0)
    assert experimenter.last(Progress).of == 21
    assert participant.last(Show).share == pytest.approx(0.5)


def test_share_of_a_resumed_session_excludes_earlier_practice(tmp_path):
    _, _, _, plan = begin(read_design(changed(tmp_path)))
    display, participant, experimenter, _ = begin(read_design(changed(tmp_path)), 20, {1, 2, 3})
    display.park(dataclasses.replace(plan, kind="test", trial=14), 0)
    assert participant.last(Show).share == pytest.approx(0.5)
    assert experimenter.last(Progress).of == 23


def test_experimenter_sees_a_requested_pause_but_not_one_on_pages(tmp_path):
    display, participant, experimenter, plan = begin(read_design(changed(tmp_path)), trials=20)
    display.announce_motion(10.0)
    assert not experimenter.last(Progress).paused, "the button must offer to pause the measurement"
    display.request_pause(True)
    assert experimenter.last(Progress).paused and participant.last(Show).kind == "pause"
    display.rest(0.0, "")
    assert experimenter.last(Progress).paused
    display.pause()
    display.request_pause(False)
    display.park(plan, 0)
    assert not experimenter.last(Progress).paused


SIZES = st.tuples(st.integers(640, 4000), st.integers(480, 2400))


@given(SIZES)
def test_layout_areas_do_not_overlap(size):
    layout = Layout(*size)
    rows = [layout.bar, layout.keys, layout.hint, layout.field, layout.lead, layout.title]
    assert all(layout.window.holds(row) for row in rows)
    # Neighbours share an edge, which rounding puts in two places.
    assert all(below.y + below.height <= above.y + 1e-6 for below, above in itertools.pairwise(rows))
    columns = [layout.left, layout.field, layout.right]
    assert all(one.x + one.width <= other.x + 1e-6 for one, other in itertools.pairwise(columns))


@given(st.floats(0.2, 5), st.floats(0, 60))
def test_pacing_target_moves_at_constant_speed(stroke, after):
    pacing = Pacing(((0, 0), (0.1, 0)), stroke, 100.0)
    now = 100.0 + after
    assert pacing_share(pacing, 99.0) == 0.0
    assert turns(pacing, 99.0) == 0
    assert abs(pacing_share(pacing, now + 1e-3) - pacing_share(pacing, now)) <= 1e-3 / stroke + 1e-9
    end = 100.0 + stroke * turns(pacing, now)
    assert end - stroke - 1e-9 <= now <= end + 1e-9
    assert pacing_share(pacing, end) == pytest.approx(turns(pacing, now) % 2, abs=1e-6)


def test_masking_noise_is_pink_and_periodic():
    noise = pink_noise(1 << 18)
    power = np.abs(np.fft.rfft(noise)) ** 2
    frequency = np.fft.rfftfreq(len(noise), 1 / RATE)
    octaves = [power[(frequency >= low) & (frequency < 2 * low)].sum() for low in (50, 200, 1000, 4000, 7000)]
    assert max(octaves) / min(octaves) < 1.02  # the same power in every octave
    assert power[frequency < 39].sum() < 1e-12 * power.sum()
    steps = np.abs(np.diff(noise))
    assert abs(noise[0] - noise[-1]) < steps.max()
    assert np.abs(noise).max() == 1.0


def test_sound_levels_are_shares_of_full_scale():
    wave = np.frombuffer(samples(tones(2), 0.25), "<i2")
    assert np.abs(wave).max() == pytest.approx(0.25 * 32767, rel=1e-3)
    loud = np.flatnonzero(np.abs(wave) > 800)
    assert np.diff(loud).max() > 0.05 * RATE  # two tones with a pause between them
    with pytest.raises(ConfigurationError, match=r"screen.noise_level = 1.5: must be .* at most 1"):
        ScreenSettings(noise_level=1.5)


def test_screens_are_opened_without_loading_toolkits():
    code = f"import sys; sys.path[:0] = {sys.path!r}; import apps.experiment.screens.launch"
    code += "; sys.exit(any(name.split('.')[0] in ('PySide6', 'pyqtgraph', 'pyglet', 'numba') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_sound_device_is_reported():
    lines = (
        f"import sys; sys.path[:0] = {sys.path!r}; import pyglet",
        "pyglet.options.shadow_window = False; pyglet.options.audio = ('silent',)",
        "from apps.experiment.screens.sound import Sound",
        "sound = Sound(0.1, 0.1); print(sound.obstacle); sound.obstacle = ''",  # as with a device
        "sound.noise(True); sound.tone(1); sound.tone(2); sound.noise(False); sound.close()",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pyglet finds no sound device" in done.stdout


@given(st.binary(min_size=1, max_size=40), st.integers(0, 200), st.integers(0, 100))
def test_endless_sound_is_periodic(data, start, size):
    assert part_of(data, start, size, endless=True) == (data * 302)[start : start + size]
    assert part_of(data, start, size, endless=False) == data[start : start + size]
