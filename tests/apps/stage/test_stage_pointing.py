"""A gamepad's stick and a tablet's pen as the hand: pyglet's own classes, on a device that a test emulates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.front_ends.messages import HandButtons, HandTarget
from apps.opengl.plane import Area, Plane
from apps.stage.pointing import DEAD_ZONE, Gamepad, Pen, Pointers
from tests.apps.stage.driving import WORKSPACE

pyglet = pytest.importorskip("pyglet")
PLANE = Plane(Area(0, 0, 1200, 900), WORKSPACE)


class Pad:
    """A gamepad whose axes and buttons a test moves, as pyglet's driver would."""

    def __init__(self) -> None:
        from pyglet.input.base import AbsoluteAxis, Button, Controller, Device
        from pyglet.input.controller import Relation, Sign

        self.x, self.y = (AbsoluteAxis(name, 0, 255, name) for name in ("x", "y"))
        self.a = Button("a")
        device = type("EmulatedPad", (Device,), {"get_controls": lambda device: [self.x, self.y, self.a]})(None, "pad")
        device.id_product = None
        mapping = {
            "guid": "0",
            "name": "an emulated pad",
            "leftx": Relation("axis", 0, Sign.DEFAULT),
            "lefty": Relation("axis", 1, Sign.DEFAULT),
            "a": Relation("button", 0, Sign.DEFAULT),
        }
        self.controller = Controller(device, mapping)
        self.device = device


@pytest.fixture
def pad() -> Pad:
    pyglet.options.shadow_window = False
    return Pad()


def test_the_stick_reaches_all_of_the_workspace_and_rests_in_its_middle(pad: Pad) -> None:
    said: list[Any] = []
    gamepad = Gamepad(pad.controller, said.append)
    assert gamepad.name == "an emulated pad"
    pad.x.value = 255
    assert said == [], "there is no plane"
    gamepad.want(PLANE)
    pad.x.value = 130
    assert said == [], "hardly moved: the hand is not taken away from the mouse"
    pad.x.value, pad.y.value = 255, 0
    assert said[-1] == HandTarget(*(pytest.approx(part) for part in WORKSPACE[1]))
    pad.x.value, pad.y.value = 128, 128
    assert abs(2 * 128 / 255 - 1) < DEAD_ZONE
    assert said[-1] == HandTarget(pytest.approx(0.0), pytest.approx(0.0))
    gamepad.want(None)
    said.clear()
    pad.x.value = 0
    assert said == []


def test_its_buttons_are_the_devices_and_are_let_go_with_the_plane(pad: Pad) -> None:
    said: list[Any] = []
    gamepad = Gamepad(pad.controller, said.append)
    gamepad.want(PLANE)
    pad.a.value = 1
    assert said == [HandButtons(2)]
    gamepad.want(None)
    assert said == [HandButtons(2), HandButtons(0)]


def test_one_that_was_unplugged_is_closed(pad: Pad) -> None:
    gamepad = Gamepad(pad.controller, [].append)
    gamepad.poll()
    pad.device.open()

    def gone() -> bool:
        raise OSError(19, "No such device")

    pad.device.poll = gone
    gamepad.poll()
    assert not pad.device.is_open


class Events(pyglet.event.EventDispatcher):
    """What of a window hands need: its events."""


for _name in ("on_mouse_motion", "on_mouse_drag", "on_mouse_press", "on_mouse_release", "on_deactivate"):
    Events.register_event_type(_name)


def test_a_pen_grips_as_firmly_as_it_is_pressed() -> None:
    pyglet.options.shadow_window = False
    from pyglet.input.base import TabletCanvas

    from apps.opengl.hand import Hand

    window = Events()
    said: list[Any] = []
    hand = Hand(window, said.append)
    hand.want(PLANE)
    canvas = TabletCanvas(window)
    pen = Pen(canvas, hand)  # pyglet holds what it calls weakly
    canvas.dispatch_event("on_motion", None, 600, 450, 0.3, 0.0, 0.0, 0)
    assert said[-1] == HandTarget(pytest.approx(0.0), pytest.approx(0.0), 0.3)
    window.dispatch_event("on_mouse_motion", 600, 450, 0, 0)
    assert said[-1].grip == 0.3, "the same pen as the window system's pointer"
    canvas.dispatch_event("on_motion", None, 600, 450, 7.0, 0.0, 0.0, 0)
    assert said[-1].grip == 1.0
    canvas.dispatch_event("on_motion", None, 600, 450, 0.0, 0.0, 0.0, 0)
    canvas.dispatch_event("on_leave", None)
    window.dispatch_event("on_mouse_motion", 600, 450, 0, 0)
    assert said[-1].grip == 1.0, "a mouse is firm"
    del pen


def found(monkeypatch: pytest.MonkeyPatch, controllers: Any, tablets: Any) -> Pointers:
    """Return what is found where pyglet says this."""
    from apps.opengl.hand import Hand

    pyglet.options.shadow_window = False
    from pyglet import input as devices

    monkeypatch.setattr(devices, "get_controllers", controllers)
    monkeypatch.setattr(devices, "get_tablets", lambda display: tablets())
    window = Events()
    window.display = None
    return Pointers(window, Hand(window, [].append), [].append)


def raising(error: Exception) -> Any:
    def function(*_: Any) -> Any:
        raise error

    return function


def test_without_input_devices_it_is_said_why_and_the_mouse_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    pyglet.options.shadow_window = False
    from pyglet.input.linux import evdev

    from apps.stage.drawing.notes import keys

    if Path("/dev/input").exists():  # else the system itself refuses
        monkeypatch.setattr(
            evdev.os, "listdir", raising(FileNotFoundError(2, "No such file or directory", "/dev/input"))
        )
    pointers = found(monkeypatch, evdev.get_controllers, raising(ImportError('Library "Xi" not found.')))
    assert pointers.names == ("no gamepad: this system has no /dev/input", 'no pen: Library "Xi" not found.')
    pointers.want(PLANE)
    pointers.poll()
    assert ("", "no gamepad: this system has no /dev/input") in keys(False, True, pointers.names)
    assert not any("gamepad" in words for _, words in keys(False, False, pointers.names)), "the mouse is not the hand"


def test_a_gamepad_that_is_not_ours_to_read_is_named_and_others_are_used(
    pad: Pad, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Pad()
    other.device.open = raising(PermissionError(13, "Permission denied", "/dev/input/event7"))
    pointers = found(monkeypatch, lambda: [other.controller, pad.controller], list)
    assert pointers.names == (
        "an emulated pad: its left stick is your hand",
        "an emulated pad: cannot be opened (Permission denied)",
    )
    assert pad.device.is_open
