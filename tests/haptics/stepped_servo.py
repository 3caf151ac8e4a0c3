"""A real servo that goes on by one tick at a time, on a device that moves and can fail in every way."""

from __future__ import annotations

import math
import threading
import warnings
from typing import Any

import numpy as np

from haptics import DeviceFault, Servo
from haptics.clock import Clock
from haptics.device import DEAD_MAN_BUTTON, Causality, State
from haptics.elements.classic.models import CLASSICS
from haptics.elements.models import Element
from haptics.errors import AmbiguousLawWarning
from haptics.friction.law import Law
from haptics.records import Status
from haptics.rendering.envelope import Limits
from haptics.rendering.programs import parameters_of
from haptics.rendering.rendering import Rendering
from haptics.servo.loop import End
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice, Vector
from tests.haptics.strategies import Grip, make

CLASSIC = {
    "karnopp": Causality.ADMITTANCE,
    "explicit-coulomb": Causality.ADMITTANCE,
    "quinn": Causality.IMPEDANCE,
    "lugre": Causality.IMPEDANCE,
    "elastoplastic": Causality.IMPEDANCE,
    "reset-integrator": Causality.IMPEDANCE,
    "iwan": Causality.IMPEDANCE,
}
REFUSED = {
    "nan": Status.NOT_FINITE,
    "infinite": Status.NOT_FINITE,
    "half nan": Status.NOT_FINITE,
    "old": Status.STALE,
    "future": Status.STALE,
    "far": Status.IMPLAUSIBLE,
    "fast": Status.IMPLAUSIBLE,
}
"""What can be wrong with a sample, and the flag that says so."""


def build(model: str, law: Law, grip: Grip) -> Element:
    """Build an element by the letter or the name of its model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AmbiguousLawWarning)
        if model not in CLASSIC:
            return make(model, law, grip)
        return CLASSICS[model][CLASSIC[model]](law, period=grip.period)  # type: ignore[call-arg]


class Turnstile(Clock):
    """A clock at whose every deadline the servo waits until it is let through, late or not."""

    def __init__(self, period: float) -> None:
        super().__init__(period)
        self._open, self._waiting = threading.Semaphore(0), threading.Semaphore(0)
        self._late = 0.0

    def wait(self, tick: int) -> float:
        super().wait(tick)
        self._waiting.release()
        self._open.acquire()
        late, self._late = self._late, 0.0
        return late

    def until_waiting(self) -> None:
        assert self._waiting.acquire(timeout=100.0)

    def left_for_good(self) -> None:
        self._waiting.release()

    def let_through(self, late: float = 0.0) -> None:
        self._late = late
        self._open.release()
        self.until_waiting()


class Moving(BenchDevice):
    """A handle that a hand pushes about, and whose samples and cables have all kinds of faults.

    An impedance device is a mass under the hand's force and the command; an admittance device follows its reference,
    unless it is blocked.
    """

    MASS, DAMPING, SPRING = 0.2, 4.0, 30.0

    def __init__(self, clock: Clock, causality: Causality, **facts: Any) -> None:
        super().__init__(clock, causality, **facts)
        self.push: Vector = np.zeros(2)
        self.held = self.dead = self.blocked = False
        self.next = "good"
        self._position, self._velocity = np.array((0.06, -0.04)), np.zeros(2)
        self._time = 0.0
        self._given = State(position=self._position.copy())

    def read(self) -> State:
        self._move(self.clock.time - self._time)
        self._time = self.clock.time
        self.reads += 1
        if self.next == "read error":
            raise OSError("no such device")
        state = self._spoilt(State(self._time, self._position.copy(), self._velocity.copy(), self.push.copy()))
        state.buttons = DEAD_MAN_BUTTON if self.held else 0
        if self.next not in REFUSED:
            self._given = state
        return state

    def write(self, command: Vector) -> None:
        if self.next == "write error":
            self.dead = True
        if self.dead:
            raise OSError("no such device")
        super().write(command)

    def _move(self, duration: float) -> None:
        command = self.written[-1] if self.written else None
        if self.spec.causality is Causality.ADMITTANCE:
            before = self._position
            moves = command is not None and not self.blocked
            self._position = before + (0.5 * (command - before) if moves else 0.0)
            self._velocity = (self._position - before) / duration if duration else np.zeros(2)
            return
        for _ in range(max(round(duration / 1e-3), 1) if duration else 0):
            force = self.push - self.DAMPING * self._velocity - self.SPRING * self._position
            force = force + (command if command is not None else 0.0)
            self._velocity = self._velocity + 1e-3 * force / self.MASS
            self._position = self._position + 1e-3 * self._velocity

    def _spoilt(self, state: State) -> State:
        match self.next:
            case "nan":
                state.position[:] = state.velocity[:] = state.force[:] = math.nan
            case "half nan":
                state.force[1] = math.nan
            case "infinite":
                state.velocity[0] = -math.inf
            case "old":
                state.time -= 1.0
            case "future":
                state.time += 1.0
            case "far":
                state.position += 1e4
            case "fast":
                state.velocity += (0.0, 1e3)
            case "stuck":
                return State(state.time, self._given.position, self._given.velocity, self._given.force)
            case "duplicate":
                return self._given
        return state


class Run:
    """A servo that goes on by one tick at a time."""

    def __init__(self, device: Moving, element: Element, clock: Turnstile, trace: Trace, limits: Limits) -> None:
        self.device, self.clock, self.trace, self.limits = device, clock, trace, limits
        self.end: End | None = None
        self.fault: DeviceFault | None = None
        self.finished = False
        self.wanted: Element | None = None
        self.parameters = {0: parameters_of(element)}
        self.servo = Servo(device, element, trace, clock=clock, limits=limits, before_tick=self._configure)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        clock.until_waiting()

    def _configure(self, rendering: Rendering) -> None:
        if self.wanted is not None:
            version = len(self.parameters)
            self.parameters[version] = parameters_of(self.wanted)
            rendering.configure(self.parameters[version], version)
            self.wanted = None

    def _run(self) -> None:
        try:
            self.end = self.servo.run()
        except DeviceFault as fault:
            self.fault = fault
        finally:
            self.finished = True
            self.clock.left_for_good()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join(60.0)
        assert not self._thread.is_alive()
