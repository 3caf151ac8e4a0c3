"""Descriptions of the material under the contact. No pyglet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from apps.front_ends.run import levels, region_name
from apps.stage.motion import Motion

if TYPE_CHECKING:
    from haptics.scenes import Scene

Words = tuple[str, str]
"""The name of a material, and a description of its law."""


def law_words(values: Mapping[str, float]) -> Words:
    """Return a description of the levels of a law that is the same everywhere."""
    found = " / ".join(f"{level:.3g}" for level in levels(values))
    return "", f"friction {found} N" if found else ""


def words_here(scene: Scene, motion: Motion) -> Words:
    """Return the name of the region under the contact, and its local break-away force."""
    if motion.region > len(scene.regions):
        return "", ""
    level = float(scene.numbers_at(motion.contact)[0, 0])
    return region_name(scene, motion.region), f"breaks away at {level:.2f} N here"
