"""Mouse input for pyglet windows in which the mouse acts as the virtual hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyglet

from apps.front_ends.messages import HandButtons, HandTarget
from apps.opengl.plane import Plane


class Hand:
    """Sends position and buttons of the mouse on the plane while the mouse acts as the hand.

    Parameters
    ----------
    window : pyglet Window
        Window that receives the mouse events.
    send : callable
        Receives `HandTarget` and `HandButtons`.

    Attributes
    ----------
    grip : float
        Relative grip strength, 0 to 1: 1 for a mouse, the pressure for the pen of a tablet.
    """

    def __init__(self, window: Any, send: Callable[[Any], None]) -> None:
        self._send = send
        self._plane: Plane | None = None
        self._wanted = False
        self._buttons = 0
        self.grip = 1.0
        mouse = pyglet.window.mouse
        self._bits = {mouse.LEFT: 1 << 1, mouse.RIGHT: 1 << 2, mouse.MIDDLE: 1 << 3}
        window.push_handlers(
            on_mouse_motion=lambda x, y, dx, dy: self._move(x, y),
            on_mouse_drag=lambda x, y, dx, dy, buttons, modifiers: self._move(x, y),
            on_mouse_press=lambda x, y, button, modifiers: self._hold(self._buttons | self._bits.get(button, 0)),
            on_mouse_release=lambda x, y, button, modifiers: self._hold(self._buttons & ~self._bits.get(button, 0)),
            on_deactivate=lambda: self._hold(0),
        )

    def set_plane(self, plane: Plane | None) -> None:
        """Use the mouse as the hand on `plane`, or stop using it if `plane` is None."""
        self._hold(0)
        self._wanted = plane is not None
        self._plane = plane

    def place(self, plane: Plane) -> None:
        """Update the position of the plane in the window."""
        if self._wanted:
            self._plane = plane

    def grip_at(self, x: float, y: float, grip: float) -> None:
        """Set the grip strength and move the hand to a pixel of the window."""
        self.grip = grip
        self._move(x, y)

    def _move(self, x: float, y: float) -> None:
        if self._plane is not None:
            self._send(HandTarget(*self._plane.to_plane(x, y), self.grip))

    def _hold(self, buttons: int) -> None:
        if self._plane is not None and buttons != self._buttons:
            self._buttons = buttons
            self._send(HandButtons(buttons))
