"""Program of a test: lay out the stage on a display and print the boxes of its texts as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np

from apps.front_ends.run import RunInfo
from apps.opengl.drawing import Brush
from apps.opengl.window import open_window
from apps.shared.theme import DARK
from apps.stage.motion import Motion
from apps.stage.picture import Picture, keys
from haptics.scenes import find_scene, read_scene
from tests.apps.stage.driving import WORKSPACE, rows

SIZES = ((1280, 720), (1366, 768), (2560, 1440), (800, 600))
LONG = "a very long name of a material that nobody would give it"
WORDS = "The handle is at the edge of the workspace, where nothing can be felt: move it to the middle. " * 3


def scenes():
    """Return scenes by name: with walls, with materials, and with the longest names."""
    materials = read_scene(find_scene("ice-wood-rubber"))
    named = [replace(region, name=f"{LONG} {k}") for k, region in enumerate(materials.regions)]
    return {"walls": read_scene(find_scene("box")), "materials": materials, "long": replace(materials, regions=named)}


def main():
    """Print one entry for each size and scene: boxes of the texts of each part, and the areas they belong in."""
    found = []
    for size in SIZES:
        window = open_window("stage", size=size)
        for name, scene in scenes().items():
            brushes = _brushes(window, scene)
            layout = brushes.pop("layout")
            boxes = {
                part: [(b.left, b.bottom, b.content_width, b.content_height) for b in brush.labels if b.text]
                for part, brush in brushes.items()
            }
            words = {part: [label.text for label in brush.labels] for part, brush in brushes.items()}
            found.append({"size": size, "scene": name, "panel": layout, "boxes": boxes, "words": words})
        window.close()
    json.dump(found, sys.stdout)


def _brushes(window, scene):
    """Return the brushes of the parts of a picture, and the column (x, y, width, height)."""
    made: list[Brush] = []
    first = Brush.__init__

    def note(brush):
        first(brush)
        made.append(brush)

    picture = Picture(window, DARK)
    info = RunInfo(device="virtual-joystick", model="C", hand="minimum-jerk", workspace=WORKSPACE)
    Brush.__init__ = note
    try:
        picture.show_run(info, scene)
    finally:
        Brush.__init__ = first
    standing = made[-1]
    picture.explain(keys(True, True, ("an emulated gamepad with a rather long name: its left stick is your hand",)))
    picture.announce(WORDS, True)
    picture.helping = True
    motion = Motion(info.rate, info.causality)
    motion.add_rows(np.asarray(rows((0.0, 0.0))))
    region = scene.regions[0].name if scene.regions else "ground"
    picture.draw(motion, 0.0, (region, "breaks away at 12.34 N here"))
    panel = picture.scenery.layout.panel
    return {
        "standing": standing,
        "numbers": picture._numbers.brush,
        "banner": picture._banner.brush,
        "help": picture._help.brush,
        "layout": (panel.x, panel.y, panel.width, panel.height),
    }


if __name__ == "__main__":
    main()
