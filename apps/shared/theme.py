"""Colours of the view, for a dark and a light ground.

The hues are those of Okabe and Ito's palette, which people with any common colour deficiency can tell apart. Where an
original is too pale for the ground it is darkened in its own hue, so that every line keeps a contrast of at least 3
to the panel and every text one of at least 4.5. Colour is never the only sign: stick is drawn as dots and bands where
slip is a line, the law's level is dashed, a lamp that is on is filled and one that is off is an outline.

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
    """One set of colours, as ``#rrggbb``; the roles are described in the module.

    Attributes
    ----------
    ground, panel, text, faint, raster, border : str
        Window, panels and plots, text, less important text, raster of the plane, frames.
    stop, on_stop, on_alarm : str
        The stop button, and the text on it and on a lit lamp.
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
"""What may be asked for; ``auto`` follows the desktop."""


def by_name(name: str, desktop_is_dark: bool = False) -> Theme:
    """Return the theme called `name`; ``auto``, and any other word, follows the desktop."""
    named = {"dark": DARK, "light": LIGHT}
    return named.get(name, DARK if desktop_is_dark else LIGHT)


def blend(colour: str, ground: str, share: float) -> str:
    """Return `share` of a colour over the rest of another one.

    Opaque, unlike transparency: segments that overlap at their joints do not show them, and they are quicker to draw.
    """
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(share * over + (1 - share) * under) for over, under in pairs).hex()


def other(theme: Theme) -> Theme:
    """Return the theme that the toggle leads to."""
    return LIGHT if theme is DARK else DARK
