"""Long computations for the topic of tests/devices/joystick/test_closed_loop.py."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from devices.emulators.pid.profiles.known import PROFILES
from tests.devices.joystick.conftest import (
    compiled,  # noqa: F401
    trace,  # noqa: F401
)
from tests.devices.joystick.test_closed_loop import (
    CASES,
    Loop,
    advised,
    data_sheet,
    drift,
    loop,  # noqa: F401
    swing,
)

pytestmark = pytest.mark.usefixtures("compiled")


DOCUMENTED_FORCES = (1.0, 2.0, 4.0)
"""Friction forces of the table in docs/joysticks.md [N]."""


def vector_rate(profile: str) -> float:
    """Return how many forces the bus takes at most [1/s]: a report for each dimension."""
    return 1.0 / (data_sheet(profile).dimensions * float(PROFILES[profile].truths()["device"]["out_interval_s"]))


@pytest.mark.parametrize(("profile", "force"), CASES)
def test_a_push_that_damps_nothing_is_held(profile: str, force: float, loop: Loop) -> None:
    found = advised(profile, force)
    hand = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.4, 0.4 * force, 0.3 * force]]}
    rows = loop(profile, hand, force, found.stiffness, found.damping, 4.0)
    held = rows[-1500:]
    resolution = data_sheet(profile).position_resolution
    assert drift(held) < 0.5 * resolution
    assert swing(held) <= 2.0 * found.count_jump, "a count up or a count down"
    place = np.hypot(*held[:, 4:].mean(axis=0))
    load = force * math.hypot(*(0.4, 0.3)[: data_sheet(profile).dimensions])
    assert place == pytest.approx(load / found.stiffness, rel=0.02, abs=resolution), "the coupling gives way"


def test_documented_advice_is_that_of_the_data_sheets() -> None:
    page = (Path(__file__).parents[5] / "docs/joysticks.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    rows = [row for row in rows if row[0].split("`")[1] in PROFILES]
    for stick, rate, delay, step, *advice in rows:
        profile = stick.split("`")[1]
        spec = data_sheet(profile)
        assert float(rate) == pytest.approx(vector_rate(profile))
        assert float(delay.split()[0]) == pytest.approx(1e3 * spec.delay)
        assert float(step.split()[0]) == pytest.approx(1e6 * spec.position_resolution, rel=0.02)
        assert f"{spec.mass:g} kg, {spec.damping:g} N s/m" in stick
        assert len(advice) == len(DOCUMENTED_FORCES)
        for force, words in zip(DOCUMENTED_FORCES, advice, strict=True):
            stiffness, damping = (float(part.split()[0]) for part in words.split(","))
            found = advised(profile, force)
            assert stiffness == pytest.approx(found.stiffness, rel=0.05), "two digits"
            assert damping == pytest.approx(found.damping, rel=0.05)
    assert len(rows) == len(PROFILES)
