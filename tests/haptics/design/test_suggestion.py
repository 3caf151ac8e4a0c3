"""What is suggested does what it says, on a real element in front of an exactly integrated handle."""

import math

import numpy as np
import pytest

from haptics.design import (
    Coupling,
    Handle,
    Suggestion,
    settling_time,
    stiffness_limit,
    suggest,
)
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Coulomb
from tests.haptics.design.plants import ExactHandle, decays, held_path

JOYSTICK = Handle(0.2, 1.0, 0.5e-3, 10e-6)
HANDLES = [JOYSTICK, Handle(0.2, 0.0, 2e-3, 100e-6), Handle(0.05, 0.0, 0.0, 20e-6), Handle(1.5, 4.0, 1.3e-3)]


def held(handle: Handle, suggestion: Suggestion, times: tuple[float, float]) -> bool:
    stiffness, damping = times[0] * suggestion.stiffness, times[1] * suggestion.damping
    element = MasslessImpedance(Coulomb(1e9), stiffness, damping)
    return decays(held_path(handle, lambda velocity: float(element.step((velocity, 0.0))[0]), 1e-3, 800))


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("times", [(1.0, 1.0), (1.99, 1.0), (1.99, 1.99)])
def test_a_real_element_with_it_holds_the_handle_with_the_margin(handle: Handle, times: tuple[float, float]) -> None:
    assert held(handle, suggest(handle, force=4.0), times)


@pytest.mark.parametrize("handle", HANDLES)
def test_behind_the_encoder_a_contact_loaded_with_three_quarters_of_its_friction_does_not_slip(handle: Handle) -> None:
    force = 4.0
    suggestion = suggest(handle, force)
    element = MasslessImpedance(Coulomb(force), suggestion.stiffness, suggestion.damping)
    plant, q, last, drift = ExactHandle(handle, velocity=0.0), handle.resolution, 0.0, 0.0
    for tick in range(3000):
        seen = round(plant.position / q) * q if q else plant.position
        friction = float(element.step(((seen - last) / 1e-3, 0.0))[0])
        drift += float(element.velocity[0]) * 1e-3
        last = seen
        push = 0.75 * force * min(tick / 1000.0, 1.0) + 0.01 * force * math.sin(0.06 * tick)
        plant.command(friction - push)
        plant.advance(1e-3)
    assert drift == 0.0


@pytest.mark.parametrize("handle", HANDLES)
def test_a_kick_of_the_handle_has_died_out_after_the_settling_time(handle: Handle) -> None:
    """An exactly integrated handle: 2 % of its slowest motion are left then, and clearly more at half of that time."""
    found = suggest(handle, force=4.0)
    element = MasslessImpedance(Coulomb(1e9), found.stiffness, found.damping)
    ticks = math.ceil(found.settling / 1e-3) + 20
    path = np.abs(held_path(handle, lambda velocity: float(element.step((velocity, 0.0))[0]), 1e-3, ticks))
    assert path[-20:].max() < 0.06 * path.max()
    assert path[ticks // 3 : 2 * ticks // 3].max() > 0.06 * path.max()


def test_a_contact_that_does_not_hold_never_settles() -> None:
    assert settling_time(JOYSTICK, Coupling(1.1 * stiffness_limit(JOYSTICK, 10.0), 10.0)) == math.inf


def test_there_is_a_reason_for_every_bound() -> None:
    stability, encoder, settling, presliding = suggest(JOYSTICK, 4.0).reasons
    assert stability.startswith("stability: 0.2 kg with 1 N s/m, 0.5 ms late")
    assert encoder == "encoder: a count of 10 um changes the force by 0.4 N of 4 N."
    assert settling == "settling: the bare handle is at rest 0.093 s after a kick."
    assert presliding == "presliding: the handle gives way by 0.323 mm before the contact slides."
    *_, slow, soft = suggest(Handle(0.25, 1.5, 9e-3, 128e-6), 1.0).reasons
    assert slow.endswith("no coupling that keeps the other bounds is at rest within 0.5 s.")
    assert soft.endswith("above 1 mm it feels like rubber.")


@pytest.mark.parametrize(
    ("handle", "force", "margin", "message"),
    [
        (JOYSTICK, 0.0, 2.0, r"force = 0\.0: must be a finite number greater than 0 N\."),
        (JOYSTICK, 4.0, 1.0, r"margin = 1\.0: must be a finite number greater than 1\."),
        (Handle(0.2, resolution=1e-3), 1e-9, 2.0, "too small for an encoder of 0.001 m"),
    ],
)
def test_what_cannot_be_is_refused(handle: Handle, force: float, margin: float, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        suggest(handle, force, margin=margin)
