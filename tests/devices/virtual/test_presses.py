"""Virtual hands on the device's buttons: as texts, at the exact ticks, with every hand, and on an emulated stick."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import devices
from devices.common.workspace import Workspace
from devices.emulators.pid.plant import StickPlant
from devices.emulators.pid.profiles.known import PROFILES
from devices.virtual.hands.hand import Hand, HandSample, HandSettings
from devices.virtual.hands.presses import CLICK, MOST_BUTTONS, Press, edges_of, parse_presses
from devices.virtual.hands.registry import HANDS, make_hand
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, Vector
from haptics.errors import ConfigurationError
from tests.system.devices.virtual.test_compiled_hands import hand_table

TICKS = 250
MILLISECONDS = st.integers(0, 300).map(lambda number: number * 1e-3)
BUTTONS = st.integers(1, MOST_BUTTONS).map(str)
LENGTHS = st.none() | st.integers(1, 200).map(lambda number: number * 1e-3)


def opened(hand: Any, period: float, name: str = "virtual-joystick", **settings: Any) -> Any:
    """Return an open virtual device with this hand, which advances by one period with every reading."""
    return devices.open_device(name, {"hand": hand, **settings}, clock=Clock(period))


def buttons_of(device: Any, period: float) -> list[int]:
    """Return which buttons besides the dead-man's are held in each of the first ticks of a run."""
    clock, found = device._clock, []
    for clock.tick in range(TICKS):
        found.append(device.read().buttons & ~DEAD_MAN_BUTTON)
    return found


def due(press: Press, period: float) -> range:
    """Return the ticks for which a press was ordered in whole milliseconds, by whole numbers alone."""
    tick, start = round(period * 1e6), round(press.start * 1e6)
    length = round((CLICK if press.duration is None else press.duration) * 1e6)
    return range(-(-start // tick), -(-(start + length) // tick))


@given(
    presses=st.lists(st.builds(Press, BUTTONS, MILLISECONDS, LENGTHS), max_size=6),
    period=st.sampled_from([1e-3, 5e-4, 1.25e-4, 2e-3]),
    substeps=st.sampled_from([3, 8]),
)
@example([Press("1", 0.011, 0.1), Press("1", 0.111, 0.003), Press("31", 0.0, 0.29)], 1e-3, 8)
@example([Press("2", 0.017)], 1e-3, 3)  # in floating point the hand is asked at a time a little before 0.017 s
@example([Press("2", 0.001, 0.009)], 1e-3, 8)  # the sum is a little more than 0.01
def test_presses_are_held_from_their_tick_to_the_one_before_their_end(
    presses: list[Press], period: float, substeps: int
) -> None:
    hand = {"name": "minimum-jerk", "presses": [str(press) for press in presses]}
    expected = [sum({p.bit for p in presses if tick in due(p, period)}) for tick in range(TICKS)]
    device = opened(hand, period, substep=period / substeps, mass=5.0, delay=0.0)
    assert buttons_of(device, period) == expected


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
@pytest.mark.parametrize("name", HANDS)
def test_every_hand_presses_buttons_of_every_virtual_device(tmp_path: Any, name: str, device: str) -> None:
    hand = {**hand_table(name, tmp_path), "presses": ["2@0.02+0.03", "5@0.04"]}
    held = buttons_of(opened(hand, 1e-3, device), 1e-3)
    mouse = 0b1000 if name == "mouse" else 0
    assert held[:20] == [mouse] * 20
    assert held[20:40] == [mouse | 1 << 2] * 20
    assert held[40:50] == [mouse | 1 << 2 | 1 << 5] * 10
    assert held[50:140] == [mouse | 1 << 5] * 90
    assert held[140:] == [mouse] * (TICKS - 140)


def test_the_grip_alone_holds_the_button_of_the_dead_man() -> None:
    script = {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]], "presses": ["1@0+10"]}
    loose, firm = opened(script, 1e-3), opened({"name": "minimum-jerk", "presses": ["1@0+10"]}, 1e-3)
    for device, held in ((loose, 0), (firm, DEAD_MAN_BUTTON)):
        device._clock.tick = 5
        assert device.read().buttons == 1 << 1 | held


class Greedy(Hand):
    """A hand in Python that says it holds every button there is, and more, from 10 ms on."""

    stiffness, damping, start = 0.0, 0.0, (0.0, 0.0)

    def sample(self, time: float, handle: Vector) -> HandSample:
        return HandSample(0.0, 0.0, grip=0.0, buttons=-1 if time > 0.0095 else 0)


class GreedySettings(HandSettings):
    def build(self, seed: int, workspace: Workspace) -> Hand:
        return Greedy()


def test_a_hand_in_python_presses_too_but_not_the_button_of_the_dead_man() -> None:
    device = opened(GreedySettings(), 1e-3)
    found = []
    for device._clock.tick in range(12):
        found.append(device.read().buttons)
    assert found == [0] * 10 + [0xFFFFFFFE] * 2


def test_on_an_emulated_stick_they_are_its_own_buttons() -> None:
    """The driver counts them from 1 on, and takes the first for the dead-man's unless it is told otherwise."""
    handle = next(iter(PROFILES.values())).handle
    plant = StickPlant(handle, {"name": "scripted-force", "script": [[0.0, 0.0, 0.0]], "presses": ["3@0.01+0.01"]})
    held = []
    for _ in range(30):
        plant.advance((0.0, 0.0))
        held.append(plant.buttons << 1)
    assert held == [0] * 9 + [1 << 3] * 10 + [0] * 11


@pytest.mark.parametrize(
    ("presses", "message"),
    [
        ("2@1", "hand.presses = '2@1': must be a list of texts BUTTON@SECONDS+DURATION"),
        ([2], "hand.presses = [2]: must be a list of texts"),
        (["2"], "hand.presses has '2': must be a list of texts BUTTON@SECONDS"),
        (["2@-1"], "hand.presses has '2@-1'"),
        (["0@1"], "press 0@1: must be of a button with a number from 1 to 31 (0, the dead-man's, is held by a firm"),
        (["32@1"], "press 32@1: must be of a button with a number from 1 to 31."),
        (["fire@1"], "press fire@1: must be of a button"),
        (["²@1"], "press ²@1: must be of a button"),
        (["2@1e9"], "press 2@1000000000: must begin"),
        (["2@1+0"], "press 2@1+0: must last longer than 0 s"),
    ],
)
def test_a_wrong_press_is_named(presses: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        make_hand({"name": "minimum-jerk", "presses": presses}, 0, Workspace((-0.1, -0.08), (0.1, 0.08)))


@given(st.lists(st.builds(Press, BUTTONS, st.floats(0.0, 1e7), st.none() | st.floats(1e-3, 1e7)), max_size=8))
def test_what_a_press_says_is_read_as_the_same_press_and_edges_have_an_end(presses: list[Press]) -> None:
    assert parse_presses([str(press) for press in presses], "") == tuple(presses)
    edges = edges_of(presses)
    assert len(edges) == 0 or edges["buttons"][-1] == 0
    assert (edges["time"][1:] > edges["time"][:-1]).all()
