"""A person for emulated sticks: does with the handle what a real one would be asked to, and has eyes of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibration.joystick.balance import GRAVITY
from calibration.joystick.person import Look, Pair, Place
from devices.emulators.pid import emulated_stick
from devices.emulators.pid.stick import EmulatedStick
from devices.emulators.pid.usb_backend import EmulatedUsbBackend
from devices.joystick.settings import StickSettings
from devices.virtual.hand import Hand, HandSample, HandSettings, Point, Workspace
from haptics.device import Vector

_SPEED = 1.0
_STILL = 0.2
_SIGHT = 0.5e-3
_ALIKE = 0.7


@dataclass(frozen=True)
class OperatedHandSettings(HandSettings):
    """Settings of a hand that a program moves; there are none."""

    def build(self, seed: int, workspace: Workspace) -> OperatedHand:
        """Make the hand; nothing about it is random."""
        return OperatedHand(workspace)


class OperatedHand(Hand):
    """A hand that a program moves while the device runs.

    Attributes
    ----------
    wanted : (x, y)
        Where it is to bring the handle [m]; it goes there at a moderate speed.
    holds : bool
        Whether it has hold of the handle.
    load : (x, y)
        Force that pulls at the handle besides [N].
    """

    def __init__(self, workspace: Workspace) -> None:
        self.stiffness, self.damping = 600.0, 20.0
        self.workspace = workspace
        self.start = workspace.centre
        self.restart()

    def restart(self) -> None:
        """Begin anew at time zero, holding the handle in the middle."""
        self.wanted: Point = self.start
        self.load: Point = (0.0, 0.0)
        self.holds = True
        self._target, self._time = self.start, 0.0

    def sample(self, time: float, handle: Vector) -> HandSample:
        """Return the hand at `time` [s]; while it does not hold the handle, (2,) [m], it is beside it."""
        elapsed, self._time = time - self._time, time
        if not self.holds:
            self._target = (float(handle[0]), float(handle[1]))
            return HandSample(*self._target, *self.load, 0.0)
        (x, y), (wx, wy) = self._target, self.wanted
        way = math.hypot(wx - x, wy - y)
        part = min(1.0, _SPEED * elapsed / way) if way > 0.0 else 1.0
        self._target = (x + part * (wx - x), y + part * (wy - y))
        return HandSample(*self._target, *self.load)


class EmulatedPerson:
    """Who calibrates an emulated stick.

    What they see is the true motion of the handle, so a direction is confirmed only if it is right.

    Parameters
    ----------
    stick : EmulatedStick
        The stick, held by an `OperatedHand`.
    """

    def __init__(self, stick: EmulatedStick) -> None:
        hand = stick.plant.hand
        assert isinstance(hand, OperatedHand)
        self._stick, self._hand = stick, hand
        self._before = stick.handle

    def tell(self, words: str) -> None:
        """Take notice."""

    def bring(self, place: Place, look: Look) -> None:
        """Bring the handle to a place and hold it there."""
        right, away = self._hand.workspace.upper
        self._hand.wanted = place.x * right, place.y * away
        self._hand.holds = True
        way = math.dist(self._stick.handle, self._hand.wanted)
        self._stick.wait(way / _SPEED + _STILL)

    def let_go(self, look: Look) -> None:
        """Let go of the handle."""
        self._hand.holds = False
        self._stick.wait(0.05)

    def watch(self, words: str) -> None:
        """Look where the handle is."""
        self._before = self._stick.handle

    def saw(self, motion: Pair) -> bool:
        """Tell whether the handle has moved that way."""
        x, y = self._stick.handle - self._before
        seen, said = math.hypot(x, y), math.hypot(*motion)
        return seen > _SIGHT and (x * motion[0] + y * motion[1]) > _ALIKE * seen * said

    def hang(self, mass: float, look: Look) -> None:
        """Hang the weight on and step back."""
        self._hand.load = (0.0, -mass * GRAVITY)
        self._hand.holds = False
        self._stick.wait(0.5)

    def take_off(self, mass: float, look: Look) -> None:
        """Take the weight off."""
        self._hand.load = (0.0, 0.0)


def emulate(settings: StickSettings) -> tuple[EmulatedUsbBackend, EmulatedPerson]:
    """Return an emulated stick on its bus, and who holds it."""
    backend = emulated_stick(
        settings.emulator,
        hand=OperatedHandSettings(),
        seed=settings.seed,
        serial=settings.serial or None,
        faults=settings.wire_faults,
        friction=settings.friction,
    )
    return backend, EmulatedPerson(backend.sticks[0])
