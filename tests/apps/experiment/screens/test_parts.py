"""Parts of the participant's screen that need no display: places, shapes, pace, sounds."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.experiment.screens import Pacing, ScreenSettings
from apps.experiment.screens.participant.layout import arrange
from apps.experiment.screens.participant.sound import RATE, part_of, pink_noise, samples, tones
from haptics.errors import ConfigurationError

SIZES = st.tuples(st.integers(640, 4000), st.integers(480, 2400))


@given(SIZES)
def test_areas_lie_in_the_window_and_apart(size: tuple[int, int]) -> None:
    layout = arrange(*size)
    rows = [layout.bar, layout.keys, layout.hint, layout.field, layout.lead, layout.title]
    assert all(layout.window.holds(row) for row in rows)
    # Neighbours share an edge, which rounding puts in two places.
    assert all(below.y + below.height <= above.y + 1e-6 for below, above in itertools.pairwise(rows))
    columns = [layout.left, layout.field, layout.right]
    assert all(one.x + one.width <= other.x + 1e-6 for one, other in itertools.pairwise(columns))


@given(st.floats(0.2, 5), st.floats(0, 60))
def test_the_target_moves_at_constant_speed_and_a_tone_marks_each_end(stroke: float, after: float) -> None:
    from apps.experiment.screens.participant import field

    pacing = Pacing(((0, 0), (0.1, 0)), stroke, 100.0)
    now = 100.0 + after
    assert field.pacing_share(pacing, 99.0) == 0.0
    assert field.turns(pacing, 99.0) == 0
    assert abs(field.pacing_share(pacing, now + 1e-3) - field.pacing_share(pacing, now)) <= 1e-3 / stroke + 1e-9
    end = 100.0 + stroke * field.turns(pacing, now)
    assert end - stroke - 1e-9 <= now <= end + 1e-9
    assert field.pacing_share(pacing, end) == pytest.approx(field.turns(pacing, now) % 2, abs=1e-6)


def test_the_noise_is_pink_and_has_no_seam() -> None:
    noise = pink_noise(1 << 18)
    power = np.abs(np.fft.rfft(noise)) ** 2
    frequency = np.fft.rfftfreq(len(noise), 1 / RATE)
    octaves = [power[(frequency >= low) & (frequency < 2 * low)].sum() for low in (50, 200, 1000, 4000, 7000)]
    assert max(octaves) / min(octaves) < 1.02  # the same power in every octave
    assert power[frequency < 39].sum() < 1e-12 * power.sum()
    steps = np.abs(np.diff(noise))
    assert abs(noise[0] - noise[-1]) < steps.max()
    assert np.abs(noise).max() == 1.0


def test_levels_are_shares_of_full_scale() -> None:
    wave = np.frombuffer(samples(tones(2), 0.25), "<i2")
    assert np.abs(wave).max() == pytest.approx(0.25 * 32767, rel=1e-3)
    loud = np.flatnonzero(np.abs(wave) > 800)
    assert np.diff(loud).max() > 0.05 * RATE  # two tones with a pause between them
    with pytest.raises(ConfigurationError, match=r"screen.noise_level = 1.5: must be .* at most 1"):
        ScreenSettings(noise_level=1.5)


def test_an_experiment_opens_its_screens_without_loading_what_draws_them() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}; import apps.experiment.screens"
    code += "; sys.exit(any(name.split('.')[0] in ('PySide6', 'pyqtgraph', 'pyglet', 'numba') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sounds_can_be_played_and_no_device_is_told_in_words() -> None:
    lines = (
        f"import sys; sys.path[:0] = {sys.path!r}; import pyglet",
        "pyglet.options.shadow_window = False; pyglet.options.audio = ('silent',)",
        "from apps.experiment.screens.participant.sound import Sound",
        "sound = Sound(0.1, 0.1); print(sound.obstacle); sound.obstacle = ''",  # as where there is a device
        "sound.noise(True); sound.tone(1); sound.tone(2); sound.noise(False); sound.close()",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "there is no sound device that pyglet can use" in done.stdout


@given(st.binary(min_size=1, max_size=40), st.integers(0, 200), st.integers(0, 100))
def test_endless_sound_has_no_seam(data: bytes, start: int, size: int) -> None:
    assert part_of(data, start, size, endless=True) == (data * 302)[start : start + size]
    assert part_of(data, start, size, endless=False) == data[start : start + size]
