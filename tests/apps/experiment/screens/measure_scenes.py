"""Program: lay out every `Show` on a real display and print places and colours of its texts as JSON."""

import json
import sys

import pyglet

from apps.experiment.screens.drawing import Layout, Scene
from apps.experiment.screens.messages import Show
from apps.shared.theme import DARK, LIGHT
from tests.apps.experiment.screens.shows import INSTRUCTIONS, shows

SIZES = ((640, 480), (1280, 720), (1366, 768), (1024, 768), (2560, 1440))


def main():
    """Print a layout for each size and `Show`, and the colours of the texts of each form in both themes."""
    pyglet.window.Window(64, 64, visible=False)
    found = []
    long = {"too long": Show("instructions", "Long", 12 * INSTRUCTIONS)}
    for width, height in SIZES:
        for name, show in (shows() | long).items():
            scene = Scene(show, Layout(width, height), DARK, 1.0)
            scene.refresh(0.0, held=False)
            labels = scene.brush.labels
            boxes = [(each.left, each.bottom, each.content_width, each.content_height) for each in labels]
            words = [label.text for label in labels]
            entry = {"size": (width, height), "show": name, "words": words, "boxes": boxes, "small": scene.small}
            entry["letters"] = [each.font_size for each in labels]
            found.append(entry)
    colours = {
        f"{name}, {theme.name}": [
            (label.text, "#" + bytes(label.color[:3]).hex())
            for label in Scene(show, Layout(1280, 720), theme, 1.0).brush.labels
        ]
        for theme in (DARK, LIGHT)
        for name, show in shows().items()
        if show.item is not None
    }
    json.dump({"layouts": found, "colours": colours}, sys.stdout)


if __name__ == "__main__":
    main()
