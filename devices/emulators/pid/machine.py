"""State machine of the PID class: from reports and time to motor forces.

An effect is a force as a fraction of full scale; it is stored in a block of the pool. Constant forces and the centring
spring of a stick act; effects of other types are stored without a force. Times are in milliseconds, which are the
frames of the bus. Deflections are in the device's own axes: 1 is half the travel.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from dataclasses import dataclass

from devices.emulators.pid.profiles import Pair, Profile

CONSTANT, SPRING = 1, 8
"""Types of effects, by their position in the list of the report."""

SUCCESS, FULL, ERROR = 1, 2, 3
"""Status in the block load report."""

_BLOCK_SIZE = 32
"""Memory of a block [byte]."""

ENABLE, DISABLE, STOP_ALL, RESET, PAUSE, CONTINUE = range(1, 7)
"""Commands of device control, by their position in the list."""

START, START_SOLO, STOP = 1, 2, 3
"""Effect operations."""

_OLDEST_STATES = 4

ENDLESS_LOOPS = 255
"""Loop count of an endless effect."""


@dataclass(slots=True)
class Effect:
    """Effect in a block of the pool."""

    kind: int
    duration: float = math.inf
    start_delay: int = 0
    gain: float = 1.0
    direction: Pair = (0.0, 0.0)
    magnitude: float = 0.0
    stiffness: float = 0.0
    playing: bool = False
    started: int = 0
    loops: int = 1

    def start(self, now: int, loops: int) -> None:
        """Play from the beginning, also if already playing."""
        self.playing, self.started, self.loops = True, now, max(loops, 1)

    def level(self, now: int, place: Pair) -> Pair:
        """Return the force along the device's axes, before saturation."""
        if now - self.started < self.start_delay or self.kind not in {CONSTANT, SPRING}:
            return 0.0, 0.0
        if self.kind == SPRING:
            x, y = _clip(-self.stiffness * place[0]), _clip(-self.stiffness * place[1])
        else:
            x, y = self.magnitude * self.direction[0], self.magnitude * self.direction[1]
        return self.gain * x, self.gain * y


def _clip(level: float) -> float:
    return max(-1.0, min(1.0, level))


# --- state machine ----------------------------------------------------------------------------------------------------


class Machine:
    """State machine of effects, gain and actuators.

    Parameters
    ----------
    profile : Profile
        Kind of stick.

    Attributes
    ----------
    blocks : dict of Effect
        Effects by block number of the pool.
    full : bool
        Whether the pool reports that it is full, regardless of its contents: a fault on demand.
    stale : bool
        Whether block load reports the previous request, as if not updated yet: a fault on demand.
    enabled, paused : bool
        Whether the actuators are enabled, and whether all effects are paused.
    gain : float
        Gain of the device, 0 to 1.
    frame : int
        Number of frames of 1 ms since creation.
    states : deque of bytes
        Pending state reports.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.full = self.stale = False
        self.states: deque[bytes] = deque(maxlen=_OLDEST_STATES)
        self.frame = 0
        self.power_on()

    def power_on(self) -> None:
        """Reset the state machine."""
        self.states.clear()
        self.gain = 1.0
        self._reset()

    def _reset(self) -> None:
        """Free all effects; a stick with a centring spring restores it as its only effect."""
        self.blocks: dict[int, Effect] = {}
        self._loaded = self._loaded_before = (0, ERROR)
        self.enabled = self._profile.spring > 0.0
        self.paused = False
        self._centre()

    def _centre(self) -> None:
        stiffness = self._profile.spring
        if stiffness > 0.0:
            spring = Effect(SPRING, stiffness=stiffness)
            spring.start(self.frame, 1)
            self.blocks[1] = spring

    def bind(self) -> None:
        """Apply the kernel driver's commands when it claims the stick: full gain, and the centring spring."""
        self.gain = 1.0
        self._centre()

    # --- time --------------------------------------------------------------------------------------------------------

    def push(self, place: Pair) -> Pair:
        """Simulate one frame.

        Parameters
        ----------
        place : (float, float)
            Deflection of the handle along the device's axes (`devices.emulators.pid.machine`).

        Returns
        -------
        (float, float)
            Sum of all effects, each axis clipped to full scale, which is 1.
        """
        x = y = 0.0
        for block, effect in self.blocks.items():
            if not effect.playing:
                continue
            if self.paused:
                effect.started += 1  # its time does not advance
            elif (
                effect.loops != ENDLESS_LOOPS
                and self.frame - effect.started >= effect.start_delay + effect.duration * effect.loops
            ):
                effect.playing = False
                self._report("play", block)
            else:
                along = effect.level(self.frame, place)
                if self._profile.sums == "turns" and effect.kind == CONSTANT:
                    size = effect.gain * effect.magnitude
                    x, y = (x + size) * effect.direction[0], (y + size) * effect.direction[1]
                else:
                    x, y = x + along[0], y + along[1]
        self.frame += 1
        if self.paused or not (self.enabled or not self._profile.must_enable):
            return 0.0, 0.0
        return _clip(self.gain * x), _clip(self.gain * y)

    def state_report(self, block: int) -> bytes:
        """Return the state report of a block, or of all blocks if the block is not in use."""
        flags = int(self.paused) | int(self.enabled) << 1 | 0b1100
        effects = [self.blocks[block]] if block in self.blocks else list(self.blocks.values())
        playing = any(effect.playing for effect in effects)
        return self._profile.state(flags, playing, block)

    def _report(self, cause: str, block: int) -> None:
        if cause in self._profile.states_on:
            self.states.append(self.state_report(block))

    # --- pool of effect blocks ---------------------------------------------------------------------------------------

    def create(self, kind: int) -> None:
        """Process the feature report create new effect; block load reports the result."""
        profile = self._profile
        self._loaded_before = self._loaded
        old = self._loaded[0] if profile.stale_when_full else 0
        free = next((block for block in range(1, profile.blocks + 1) if block not in self.blocks), None)
        if not 1 <= kind <= profile.types:
            self._loaded = old, ERROR
        elif free is None or self.full:
            self._loaded = old, FULL
        else:
            self.blocks[free] = Effect(kind)
            self._loaded = free, SUCCESS
        self._report("create", self._loaded[0])

    def load_report(self) -> bytes:
        """Return the feature report block load."""
        profile = self._profile
        block, status = self._loaded_before if self.stale else self._loaded
        if profile.load_once and not self.stale:
            self._loaded = 0, self._loaded[1]
        left = max(profile.memory - _BLOCK_SIZE * len(self.blocks), 0)
        return struct.pack("<BBBH", profile.load, block, status, left)

    def pool_report(self) -> bytes:
        """Return the feature report pool, for a pool that the device manages."""
        profile = self._profile
        flags = 0b11 if profile.load_once else 0b01  # the lowest bit: the device manages its pool itself
        return struct.pack("<BHBB", profile.pool, profile.memory, profile.pool_says, flags)

    # --- output reports ----------------------------------------------------------------------------------------------

    def handle_report(self, kind: str, fields: dict[str, int]) -> None:
        """Process an output report; reports about unused blocks or of unknown kinds have no effect."""
        if kind == "gain":
            self.gain = fields["gain"] / 255.0
        elif kind == "control" and self._profile.bits_control:
            for place in range(6):
                if fields["bits"] >> place & 1:
                    self._command(place + 1)
        elif kind == "control":
            self._command(fields["command"])
        elif kind == "free":
            self.blocks.pop(fields["block"], None)
        elif (effect := self.blocks.get(fields.get("block", 0))) is not None:
            self._change(effect, kind, fields)

    def _change(self, effect: Effect, kind: str, fields: dict[str, int]) -> None:
        profile = self._profile
        if kind == "constant":
            effect.magnitude = _clip(fields["magnitude"] / profile.full_scale)
        elif kind == "set-effect":
            effect.kind = fields["type"]
            effect.duration = math.inf if fields["duration"] in profile.endless else fields["duration"]
            effect.start_delay = fields.get("start_delay", 0)
            effect.gain = fields["gain"] / 255.0
            effect.direction = profile.direction(fields)
            # a firmware that disables the actuators automatically also enables them automatically
            self.enabled |= profile.stop_disables
            self._report("set-effect", fields["block"])
        elif kind == "operation":
            operation = fields["operation"]
            if operation == START_SOLO or (operation == START and profile.sums == "latest"):
                self._stop_all()
            if operation in {START, START_SOLO}:
                effect.start(self.frame, fields["loops"])
            elif operation == STOP:
                effect.playing = False
            self._report("play", fields["block"])

    def _stop_all(self) -> None:
        for effect in self.blocks.values():
            effect.playing = False

    def _command(self, command: int) -> None:
        if command == RESET:
            self._reset()
        elif command == STOP_ALL:
            self._stop_all()
        elif command in {ENABLE, DISABLE}:
            self.enabled = command == ENABLE
        elif command in {PAUSE, CONTINUE}:
            self.paused = command == PAUSE
        if self._profile.stop_disables and command in {STOP_ALL, PAUSE, CONTINUE}:
            self.enabled = command == CONTINUE
