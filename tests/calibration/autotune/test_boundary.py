"""The search for the boundary of an axis: what is not tried because nothing would be seen of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from calibration.autotune import Autotune
from calibration.autotune.boundary import _Search
from calibration.autotune.plant import Plant
from calibration.autotune.pushing import Gains
from devices import create_device
from haptics.design import Handle

SPEC = create_device("virtual-joystick", {}).spec
PERIOD = 1e-3


@pytest.mark.parametrize(
    ("resolution", "friction", "words"),
    [(1e-6, 0.0, ""), (5e-3, 0.0, "counts of the encoder: too few"), (1e-6, 50.0, "too weak against 50 N of dry")],
)
def test_what_would_not_be_seen_is_not_tried_and_told_in_words(resolution: float, friction: float, words: str) -> None:
    plant = Plant(0.2, damping=1.0, delay=5e-4, friction=friction)
    pusher: Any = SimpleNamespace(period=PERIOD, spec=SPEC, wish=Autotune(axes="x"))
    gains = Gains.of(plant, resolution, SPEC, PERIOD)
    search = _Search(pusher, plant, Handle(0.2, 1.0, 5e-4, resolution), "x", 3.0, gains)
    assert (search.next() is None) is bool(words)
    assert words in search.result().doubt
