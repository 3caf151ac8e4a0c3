"""The colours of the view."""

from __future__ import annotations

import pytest

from apps.shared.theme import DARK, LIGHT, Theme, blend, by_name, other


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    bright, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=lambda theme: theme.name)
def test_texts_and_lines_stand_out(theme: Theme) -> None:
    for ground in (theme.ground, theme.panel):
        assert contrast(theme.text, ground) >= 7
        assert contrast(theme.faint, ground) >= 4.5
    for line in (theme.motion, theme.stick, theme.friction, theme.force):
        assert contrast(line, theme.panel) >= 3
    assert contrast(theme.on_stop, theme.stop) >= 4.5
    assert contrast(theme.on_alarm, theme.alarm) >= 7
    assert contrast("#000000", theme.notice) >= 7


def test_blend_goes_from_the_ground_to_the_colour() -> None:
    assert [blend("#ff8000", "#000040", share) for share in (0.0, 0.5, 1.0)] == ["#000040", "#804020", "#ff8000"]


def test_themes_by_name() -> None:
    assert (by_name("dark"), by_name("light")) == (DARK, LIGHT)
    assert (by_name("auto", desktop_is_dark=True), by_name("auto")) == (DARK, LIGHT)
    assert (other(DARK), other(LIGHT)) == (LIGHT, DARK)
