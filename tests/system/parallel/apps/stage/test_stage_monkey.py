"""Random keys, clicks, motions and sizes: the stage neither ends nor hangs, whatever is pressed."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from apps.front_ends.messages import Preparing, SessionEnded, ValuesInForce
from tests.apps.screen import WHY_NOT, Screen
from tests.apps.stage.driving import opened, rows

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

KEYS = ("F1", "F2", "F7", "F8", "F11", "Escape", "Return", "space", "f", "Left", "shift+Tab", "ctrl+c", "KP_Enter")


def monkey(screen: Screen, folder: Path, seconds: float, seed: int) -> None:
    rng = random.Random(seed)
    with opened(screen, folder) as stage:
        until, tick = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            stage.shown.screen.xdotool(script="".join(_act(rng, stage.window) for _ in range(12)))
            for message in (None, SessionEnded("stopped"), Preparing("x"), ValuesInForce({"law.force": rng.random()})):
                if message is not None and rng.random() < 0.2:
                    stage.shown.front.send(message)
            if rng.random() < 0.3:
                tick = 0
                stage.begin(mouse=rng.random() < 0.5, dead_man=rng.choice(("none", "key", "button")))
            place = rng.uniform(-0.06, 0.06), rng.uniform(-0.045, 0.045)
            stage.publish(rows(place, (rng.gauss(0, 1e-3), 0.0), sticking=rng.random() < 0.5, first=tick))
            tick += 60
            stage.shown.until_shown()
        assert stage.shown.front.open


def _act(rng: random.Random, window: str) -> str:
    match rng.randrange(4):
        case 0 | 1:
            return f"key --clearmodifiers {rng.choice(KEYS)}\n"
        case 2:
            return f"mousemove --window {window} {rng.randrange(1280)} {rng.randrange(720)}\n"
        case _:
            return f"click {rng.randrange(1, 8)}\n"


@pytest.mark.timeout(900)
def test_a_monkey_cannot_break_a_stage(screen: Screen, tmp_path: Path) -> None:
    """MONKEY_SECONDS=180 makes minutes of it."""
    monkey(screen, tmp_path, float(os.environ.get("MONKEY_SECONDS", "5")), 1)
