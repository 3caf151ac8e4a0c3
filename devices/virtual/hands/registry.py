"""Hands by name, for ``--hand`` and the table ``hand`` of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devices.common.settings import Workspace
from devices.virtual.hands.hand import Hand, HandSample, HandSettings
from devices.virtual.hands.minimum_jerk import MinimumJerkSettings
from devices.virtual.hands.mouse import HAND_TARGET, MouseSettings
from devices.virtual.hands.recorded import RecordedSettings
from devices.virtual.hands.scripted import ScriptedForceSettings
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

__all__ = ["HANDS", "HAND_TARGET", "Hand", "HandSample", "HandTable", "hand_settings", "make_hand", "parse_hand"]

HANDS: dict[str, type[HandSettings]] = {
    "minimum-jerk": MinimumJerkSettings,
    "scripted-force": ScriptedForceSettings,
    "recorded": RecordedSettings,
    "mouse": MouseSettings,
}
"""Settings class of every hand, by name; its ``build`` creates the hand."""

DEFAULT_HAND = "minimum-jerk"

HandTable = Mapping[str, Any] | HandSettings
"""A hand as a table of names and values, or as validated settings."""


def hand_settings(text: str) -> dict[str, str]:
    """Return the table ``hand`` for the option ``--hand NAME|FILE``.

    Raises
    ------
    ConfigurationError
        If `text` is neither the name of a hand nor an existing file.
    """
    if text in HANDS:
        return {"name": text}
    try:
        found = Path(text).is_file()
    except (OSError, ValueError):  # not a file name: too long, or with a zero byte
        found = False
    if found:
        return {"name": "recorded", "file": text}
    error = unknown_name("hand", text, HANDS)
    raise ConfigurationError(f"{error} A CSV file with a recorded path is allowed too, but there is no file {text!r}.")


def parse_hand(table: HandTable | None) -> HandSettings:
    """Return the validated settings of a hand from its table: ``name`` and the settings of that hand.

    Settings that are already validated are returned unchanged.

    Raises
    ------
    ConfigurationError
        If the hand is unknown or a setting is invalid.
    """
    if isinstance(table, HandSettings):
        return table
    if table is not None and not isinstance(table, Mapping):
        raise ConfigurationError(f"hand = {table!r}: must be a table such as {{name = '{DEFAULT_HAND}'}}.")
    given = dict(table or {})
    name = str(given.pop("name", DEFAULT_HAND))
    if name not in HANDS:
        raise unknown_name("hand", name, HANDS)
    return build(HANDS[name], given, "hand")


def make_hand(table: HandTable | None, seed: int, workspace: Workspace) -> Hand:
    """Create the hand that `table` describes, for a device with this `workspace`.

    Parameters
    ----------
    table : mapping, HandSettings or None
        ``name`` (default "minimum-jerk") and the settings of that hand, or its validated settings.
    seed : int
        Seed of the random numbers of the hand.
    workspace : Workspace
        Area that must contain its targets.

    Raises
    ------
    ConfigurationError
        If the hand is unknown, a setting or file is invalid, or a path leaves the workspace.
    """
    return parse_hand(table).build(seed, workspace)
