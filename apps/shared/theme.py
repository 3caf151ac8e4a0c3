"""Colours of windows and pictures, for a dark and a light background.

The view, the stage, the screens of experiments and the pictures of recordings share them. The hues are from the palette
of Okabe and Ito, which remains distinguishable with the common colour vision deficiencies. Hues too pale for the
background are darkened, so that every line has a contrast of at least 3 to the panel and every text at least 4.5.
Colour is never the only cue: sticking is drawn as dots and bands, slipping as a line, the level of the law is dashed,
and an active lamp is filled while an inactive one is outlined.

================  =======================================================  ==================================
role              drawn as                                                 Okabe-Ito name
================  =======================================================  ==================================
motion            line of the path, speed, histogram                       sky blue (dark), blue (light)
stick             dots on the plane, bands behind the time plots           orange (dark), vermillion (light)
friction          wide line                                                reddish purple
force             thin line, vectors, the bold arrow                       bluish green
alarm             filled lamp                                              yellow
notice            bar with a message                                       orange
================  =======================================================  ==================================
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """A set of colours as ``#rrggbb``. The module docstring describes the roles.

    Attributes
    ----------
    ground, panel, text, faint, raster, border : str
        Window, panels and plots, text, less important text, raster of the plane, frames.
    stop, on_stop, on_alarm : str
        The stop button, and the text on it and on an active lamp.
    """

    name: str
    ground: str
    panel: str
    text: str
    faint: str
    raster: str
    border: str
    motion: str
    stick: str
    friction: str
    force: str
    alarm: str = "#f0e442"
    on_alarm: str = "#000000"
    notice: str = "#e69f00"
    stop: str = "#c62828"
    on_stop: str = "#ffffff"


DARK = Theme(
    name="dark",
    ground="#0f1317",
    panel="#181d23",
    text="#e8eaed",
    faint="#a3adb8",
    raster="#2b333c",
    border="#3a444f",
    motion="#56b4e9",
    stick="#e69f00",
    friction="#cc79a7",
    force="#00b285",
)
LIGHT = Theme(
    name="light",
    ground="#e9ecef",
    panel="#ffffff",
    text="#1a1d21",
    faint="#59626d",
    raster="#e4e7eb",
    border="#b4bcc5",
    motion="#0072b2",
    stick="#d55e00",
    friction="#b0568a",
    force="#008a64",
)

NAMES = ("auto", "dark", "light")
"""Names of themes that can be requested; ``auto`` follows the desktop."""


def by_name(name: str, desktop_is_dark: bool = False) -> Theme:
    """Return the theme `name`; any name other than ``dark`` and ``light`` follows the desktop."""
    named = {"dark": DARK, "light": LIGHT}
    return named.get(name, DARK if desktop_is_dark else LIGHT)


def blend(colour: str, ground: str, share: float) -> str:
    """Mix a colour, with weight `share`, and a background colour.

    The result is opaque. Transparent segments would be visible where they overlap at their joints, and are slower to
    draw.
    """
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(share * over + (1 - share) * under) for over, under in pairs).hex()


def other(theme: Theme) -> Theme:
    """Return the opposite theme."""
    return LIGHT if theme is DARK else DARK
