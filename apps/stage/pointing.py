"""Gamepads and tablet pens as the hand, in addition to the mouse, through pyglet's input module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.front_ends.messages import HandButtons, HandTarget
from apps.opengl.plane import Plane
from apps.opengl.window import Hand

DEAD_ZONE = 0.08
"""Dead zone of a stick, as a fraction of its range: a stick at rest is not exactly centred."""

_NAMES = ("a", "b", "x", "y", "leftshoulder", "rightshoulder")
_BUTTONS = {name: 1 << number for number, name in enumerate(_NAMES, 1)}
"""Bits of the device's buttons that correspond to the buttons of a gamepad."""


class Gamepad:
    """The left stick of a gamepad as the hand. Its full range is mapped to the workspace.

    Parameters
    ----------
    controller : pyglet Controller
        An open controller.
    send : callable
        Receives `HandTarget` and `HandButtons` while a plane is set.
    """

    def __init__(self, controller: Any, send: Callable[[Any], None]) -> None:
        self._device, self._send = controller.device, send
        self._plane: Plane | None = None
        self._moved = False
        self._buttons = 0
        self.name = str(controller.name or "gamepad")
        controller.push_handlers(
            on_stick_motion=self._move,
            on_button_press=lambda controller, button: self._hold(self._buttons | _BUTTONS.get(button, 0)),
            on_button_release=lambda controller, button: self._hold(self._buttons & ~_BUTTONS.get(button, 0)),
        )

    def set_plane(self, plane: Plane | None) -> None:
        """Use the stick as the hand on `plane`, or stop using it if `plane` is None."""
        if plane is None:
            self._hold(0)
        self._plane = plane

    def poll(self) -> None:
        """Handle pending events of the device. A device that was unplugged is closed."""
        try:
            if self._device.is_open and self._device.poll():
                self._device.select()
        except OSError:
            self._device.close()

    def _move(self, controller: Any, stick: str, place: Any) -> None:
        if stick != "leftstick" or self._plane is None:
            return
        across, up = (part if abs(part) > DEAD_ZONE else 0.0 for part in (float(place[0]), float(place[1])))
        self._moved |= bool(across or up)
        if self._moved:
            (left, low), (right, high) = self._plane.workspace
            x, y = 0.5 * (left + right + across * (right - left)), 0.5 * (low + high + up * (high - low))
            self._send(HandTarget(x, y))

    def _hold(self, buttons: int) -> None:
        if self._plane is not None and buttons != self._buttons:
            self._buttons = buttons
            self._send(HandButtons(buttons))


class Pen:
    """The pen of a tablet, whose pressure sets the grip strength; its position arrives as mouse motion.

    Parameters
    ----------
    canvas : pyglet.input.TabletCanvas
        An open canvas.
    hand : Hand
        The mouse as the hand.
    """

    def __init__(self, canvas: Any, hand: Hand) -> None:
        self._hand = hand
        canvas.push_handlers(on_motion=self._move, on_leave=self._leave)

    def _move(self, cursor: Any, x: float, y: float, pressure: float, *_: Any) -> None:
        self._hand.grip = min(max(pressure, 0.0), 1.0)
        self._hand.move(x, y)

    def _leave(self, cursor: Any) -> None:
        self._hand.grip = 1.0


class Pointers:
    """All gamepads and tablets of this machine.

    Attributes
    ----------
    names : tuple of str
        Descriptions of the devices and their use, and the reasons why others cannot be used.
    """

    def __init__(self, window: Any, hand: Hand, send: Callable[[Any], None]) -> None:
        self._pads: list[Gamepad] = []
        self._pens: list[Pen] = []
        obstacles = []
        try:
            from pyglet.input import get_controllers

            controllers = get_controllers()
        except Exception as error:  # without /dev/input, pyglet passes on the system's error
            controllers = []
            obstacles.append(f"no gamepad: {_reason(error)}")
        for controller in controllers:
            try:
                controller.open()
            except Exception as error:  # in use by another program, or permission denied
                obstacles.append(f"{controller.name or 'gamepad'}: cannot be opened ({_reason(error)})")
            else:
                self._pads.append(Gamepad(controller, send))
        try:
            from pyglet.input import get_tablets

            self._pens = [Pen(tablet.open(window), hand) for tablet in get_tablets(window.display)]
        except Exception as error:  # as above; also if the library XInput is missing
            obstacles.append(f"no pen: {_reason(error)}")
        pads = (f"{pad.name}: its left stick is your hand" for pad in self._pads)
        pens = ("pen: press harder to hold firmer",) * bool(self._pens)
        self.names = (*pads, *pens, *obstacles)

    def set_plane(self, plane: Plane | None) -> None:
        """Use the devices as the hand on `plane`, or stop using them if `plane` is None."""
        for pad in self._pads:
            pad.set_plane(plane)

    def poll(self) -> None:
        """Handle the pending events of all gamepads. Never blocks."""
        for pad in self._pads:
            pad.poll()


def _reason(error: Exception) -> str:
    """Format an error in a few words."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"this system has no {error.filename}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
