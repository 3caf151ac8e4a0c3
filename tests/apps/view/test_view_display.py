"""Scales, colours, spectrum and start of the live view."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import welch as peers

from apps.cli import main
from apps.shared.display import PATIENCE, STEPS, AxisTop, SliderScale, clock, microseconds, millijoules, nice_ceiling
from apps.shared.theme import DARK, LIGHT, blend, by_name, other
from apps.view import launch
from apps.view.history import welch
from haptics.device import Causality
from tests.apps.session.test_picture import circle, record

# --- scales -----------------------------------------------------------------------------------------------------------


@given(st.integers(0, STEPS), st.floats(1e-3, 1e3), st.floats(1.5, 1e4), st.booleans())
def test_slider_positions_and_values_are_inverse(position, lower, ratio, by_ratio):
    scale = SliderScale(lower, lower * ratio, by_ratio)
    value = scale.value(position)
    assert lower * (1 - 1e-9) <= value <= lower * ratio * (1 + 1e-9)
    assert scale.position(value) == position


def test_logarithmic_slider_moves_in_equal_ratios_above_zero():
    scale = SliderScale(100.0, 10000.0, logarithmic=True)
    assert [scale.value(step) for step in (0, STEPS // 2, STEPS)] == pytest.approx([100.0, 1000.0, 10000.0])
    assert SliderScale(0.0, 10.0, logarithmic=True).value(STEPS // 2) == pytest.approx(5.0)
    single = SliderScale(2.0, 2.0)
    assert (single.position(2.0), single.value(0), single.decimals) == (0, 2.0, 2)


@given(st.integers(-20, 20), st.integers(1, 2000))
def test_slider_of_a_count_steps_by_one(lower, length):
    scale = SliderScale(lower, lower + length, logarithmic=True, whole=True)
    values = [scale.value(position) for position in range(scale.steps + 1)]
    assert values == pytest.approx(range(lower, lower + length + 1), abs=1e-9)
    assert [scale.position(value) for value in values] == list(range(length + 1))
    assert scale.decimals == 0


@given(st.floats(1e-6, 1e6))
def test_nice_ceiling_is_close_above(value):
    assert value * (1 - 1e-8) <= nice_ceiling(value) <= 1.51 * value
    assert [nice_ceiling(invalid) for invalid in (0.0, -value, math.nan, math.inf)] == [1.0] * 4


def test_axis_grows_at_once_and_shrinks_after_a_delay():
    axis = AxisTop(1.0)
    assert axis.follow(9.0)
    assert axis.top == 10.0
    assert [axis.follow(2.0) for _ in range(PATIENCE + 1)] == [*[False] * PATIENCE, True]
    assert axis.top == 2.5


def test_times_and_energies_are_written_in_suitable_units():
    assert [microseconds(us) for us in (0.0341, 21.4, 1300.0)] == ["0.034 µs", "21 µs", "1.3 ms"]
    assert (clock(0.0), clock(59.96), clock(75.25)) == ("0:00.0", "1:00.0", "1:15.3")
    assert (millijoules(0.1), millijoules(0.02)) == ("100", "20")
    assert [millijoules(8.26e-4, limit) for limit in (1.0, 0.1, 0.02, 1e-4)] == ["1", "0.8", "0.83", "0.8260"]


# --- colours ----------------------------------------------------------------------------------------------------------


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    """Return the contrast ratio of WCAG 2."""
    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_texts_and_lines_have_the_contrast_of_wcag(theme):
    for ground in (theme.ground, theme.panel):
        assert contrast(theme.text, ground) >= 7
        assert contrast(theme.faint, ground) >= 4.5
    for line in (theme.motion, theme.stick, theme.friction, theme.force):
        assert contrast(line, theme.panel) >= 3
    assert contrast(theme.on_stop, theme.stop) >= 4.5
    assert contrast(theme.on_alarm, theme.alarm) >= 7
    assert contrast("#000000", theme.notice) >= 7


def test_blend_interpolates_from_the_ground_to_the_colour():
    assert [blend("#ff8000", "#000040", share) for share in (0.0, 0.5, 1.0)] == ["#000040", "#804020", "#ff8000"]


def test_theme_is_chosen_by_name_or_by_the_desktop():
    assert (by_name("dark"), by_name("light")) == (DARK, LIGHT)
    assert (by_name("auto", desktop_is_dark=True), by_name("auto")) == (DARK, LIGHT)
    assert (other(DARK), other(LIGHT)) == (LIGHT, DARK)


# --- spectrum ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "rate"), [(5000, 1000.0), (700, 1000.0), (333, 500.0), (20_000, 10_000.0)])
def test_spectrum_equals_that_of_scipy(count, rate):
    random = np.random.default_rng(3)
    x, y = random.normal(size=(2, count)).cumsum(axis=1)
    found = welch(x, y, rate)
    assert found is not None
    size = round(found.seconds * rate)
    frequency, densities = peers(np.stack((x, y)), rate, window="hann", nperseg=size, noverlap=size - max(size // 2, 1))
    assert found.frequency == pytest.approx(frequency)
    assert found.density == pytest.approx(densities.sum(axis=0), rel=1e-9)


def test_spectrum_integrates_to_the_variance():
    x, y = np.random.default_rng(1).normal(size=(2, 20_000))
    found = welch(2.0 * x, y, 1000.0)
    assert found is not None
    assert np.trapezoid(found.density, found.frequency) == pytest.approx(5.0, rel=0.05)
    assert "39 segments" in found.method
    assert welch(x[:15], y[:15], 1000.0) is None


# --- start ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def dead_display(monkeypatch):
    """Select a display that does not exist; Qt aborts a process that tries to open it."""
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    monkeypatch.setenv("DISPLAY", ":4242")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")


@pytest.mark.usefixtures("dead_display")
def test_unreachable_display_is_reported(monkeypatch):
    obstacle = launch.window_obstacle()
    assert obstacle is not None
    assert "the display :4242 cannot be used" in obstacle
    assert "haptics doctor" in obstacle
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert launch.window_obstacle() is None


@pytest.mark.usefixtures("dead_display")
@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_replay_without_a_window_draws_the_picture_and_reports_the_reason(arguments, tmp_path, capfd):
    recording = record(tmp_path, circle(200), Causality.IMPEDANCE)
    assert main(["replay", str(recording.folder), *arguments]) == 0
    out, err = capfd.readouterr()
    assert "This application failed to start" not in err + out
    if arguments:
        assert Path(json.loads(out)["picture"]).is_file()
    else:
        assert "the display :4242 cannot be used" in " ".join(out.split())
