"""State machine of the PID class: from reports and time to motor forces."""

from __future__ import annotations

import math
from collections import deque

from devices.emulators.pid.effects import CONSTANT, SPRING, Condition, Effect, Envelope
from devices.emulators.pid.pool import Pool
from devices.emulators.pid.profiles.profile import Pair, Profile, Scales

ENABLE, DISABLE, STOP_ALL, RESET, PAUSE, CONTINUE = range(1, 7)
"""Commands of device control, by their position in the list."""

START, START_SOLO, STOP = 1, 2, 3
"""Effect operations."""

_OLDEST_STATES = 4


class Machine:
    """State machine of effects, gain and actuators.

    Parameters
    ----------
    profile : Profile
        Kind of stick.

    Attributes
    ----------
    pool : Pool
        Effects.
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
        self.pool = Pool(profile)
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
        self.pool.clear()
        self.enabled = self._profile.spring > 0.0
        self.paused = False
        self._centre()

    def _centre(self) -> None:
        stiffness = self._profile.spring
        if stiffness > 0.0:
            axis = Condition(positive=stiffness, negative=stiffness)
            spring = Effect(SPRING, conditions={0: axis, 1: axis})
            spring.start(self.frame, 1)
            self.pool.blocks[1] = spring

    def bind(self) -> None:
        """Apply the kernel driver's commands when it claims the stick: full gain, and the centring spring."""
        self.gain = 1.0
        self._centre()

    # --- time --------------------------------------------------------------------------------------------------------

    def push(self, place: Pair, speed: Pair) -> Pair:
        """Simulate one frame.

        Parameters
        ----------
        place, speed : (float, float)
            Deflection and speed of the handle along the device's axes (`devices.emulators.pid.effects`).

        Returns
        -------
        (float, float)
            Sum of all effects, each axis clipped to full scale, which is 1.
        """
        x = y = 0.0
        for block, effect in self.pool.blocks.items():
            if not effect.playing:
                continue
            if self.paused:
                effect.started += 1  # its time does not advance
            elif effect.over(self.frame):
                effect.playing = False
                self._report("play", block)
            else:
                x, y = self._with(effect, (x, y), effect.level(self.frame, place, speed))
        self.frame += 1
        if self.paused or not (self.enabled or not self._profile.must_enable):
            return 0.0, 0.0
        return _cut(self.gain * x), _cut(self.gain * y)

    def _with(self, effect: Effect, sum_: Pair, along: Pair) -> Pair:
        """Return the sum of the previous effects and one more, according to the rule of this firmware."""
        if self._profile.sums == "turns" and effect.kind == CONSTANT:
            size, (x, y) = effect.gain * effect.magnitude, effect.direction
            return (sum_[0] + size) * x, (sum_[1] + size) * y
        return sum_[0] + along[0], sum_[1] + along[1]

    def state_report(self, block: int) -> bytes:
        """Return the state report of a block, or of all blocks if the block is not in use."""
        flags = int(self.paused) | int(self.enabled) << 1 | 0b1100
        effects = self.pool.blocks
        playing = effects[block].playing if block in effects else any(effect.playing for effect in effects.values())
        return self._profile.state(flags, playing, block)

    def _report(self, cause: str, block: int) -> None:
        if cause in self._profile.states_on:
            self.states.append(self.state_report(block))

    # --- reports from the host ---------------------------------------------------------------------------------------

    def create(self, kind: int) -> None:
        """Process the feature report create new effect."""
        self.pool.create(kind)
        self._report("create", self.pool.loaded_block)

    def handle_report(self, kind: str, fields: dict[str, int]) -> None:
        """Process an output report; reports about unused blocks or of unknown kinds have no effect."""
        if kind == "gain":
            self.gain = fields["gain"] / 255.0
        elif kind == "control":
            self._control(fields)
        elif kind == "free":
            self.pool.free(fields["block"])
        elif (effect := self.pool.blocks.get(fields.get("block", 0))) is not None:
            self._change(effect, kind, fields)

    def _change(self, effect: Effect, kind: str, fields: dict[str, int]) -> None:
        scales = self._profile.scales
        if kind == "constant":
            effect.magnitude = _cut(fields["magnitude"] / scales.constant)
        elif kind == "set-effect":
            self._set_effect(effect, fields)
        elif kind == "operation":
            self._operate(effect, fields)
        elif kind == "condition":
            effect.conditions[fields["place"] & 0x0F] = _condition(fields, scales)
        elif kind == "periodic":
            effect.magnitude, effect.offset = fields["magnitude"] / scales.periodic, fields["offset"] / scales.offset
            effect.phase, effect.period = fields["phase"] / scales.phase, max(fields["period"], 1)
        elif kind == "ramp":
            effect.ramp = fields["start"] / scales.ramp, fields["end"] / scales.ramp
        elif kind == "envelope":
            attack, fade = fields["attack_level"] / scales.envelope, fields["fade_level"] / scales.envelope
            effect.envelope = Envelope(attack, fields["attack_time"], fade, fields["fade_time"])

    def _set_effect(self, effect: Effect, fields: dict[str, int]) -> None:
        profile = self._profile
        effect.kind = fields["type"]
        effect.duration = math.inf if fields["duration"] in profile.endless else fields["duration"]
        effect.start_delay = fields.get("start_delay", 0)
        effect.gain = fields["gain"] / 255.0
        effect.direction = profile.direction(fields)
        # a firmware that disables the actuators automatically also enables them automatically
        self.enabled |= profile.stop_disables
        self._report("set-effect", fields["block"])

    def _operate(self, effect: Effect, fields: dict[str, int]) -> None:
        operation = fields["operation"]
        if operation == START_SOLO or (operation == START and self._profile.sums == "latest"):
            self._stop_all()
        if operation in {START, START_SOLO}:
            effect.start(self.frame, fields["loops"])
        elif operation == STOP:
            effect.playing = False
        self._report("play", fields["block"])

    def _stop_all(self) -> None:
        for effect in self.pool.blocks.values():
            effect.playing = False

    def _control(self, fields: dict[str, int]) -> None:
        if not self._profile.bits_control:
            self._command(fields["command"])
            return
        for place in range(6):
            if fields["bits"] >> place & 1:
                self._command(place + 1)

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


def _condition(fields: dict[str, int], scales: Scales) -> Condition:
    centre, positive, negative = (fields[name] / scales.coefficient for name in ("centre", "positive", "negative"))
    high, low = (fields[f"{name}_saturation"] / scales.saturation for name in ("positive", "negative"))
    return Condition(centre, positive, negative, high, low, fields["dead_band"] / scales.saturation)


def _cut(level: float) -> float:
    return max(-1.0, min(1.0, level))
