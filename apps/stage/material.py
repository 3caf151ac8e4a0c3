"""What the contact is on, in words. No pyglet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from apps.front_ends.run import levels, region_name
from apps.stage.motion import Motion

if TYPE_CHECKING:
    from haptics.scenes import Scene

Words = tuple[str, str]
"""The name of a material, and its law."""


def law_words(values: Mapping[str, float]) -> Words:
    """Say the levels of the law that is in force everywhere."""
    found = " / ".join(f"{level:.3g}" for level in levels(values))
    return "", f"friction {found} N" if found else ""


def words_here(scene: Scene, motion: Motion) -> Words:
    """Say what the contact is on, and at which force it breaks away there."""
    if motion.region > len(scene.regions):
        return "", ""
    level = float(scene.numbers_at(motion.contact)[0, 0])
    return region_name(scene, motion.region), f"breaks away at {level:.2f} N here"
