"""What the envelope remembers from tick to tick: how far it has faded, what it eases from, how long samples were bad.

None of this is recorded. It follows from what is: status, permission, gate and settings of the ticks. Whether a sample
was usable is taken from the recorded flags, which `samples` checks, so that one wrong flag is not found in every tick
that comes after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.contact.laws import law_of
from apps.verify.contact.text_law import NotUnderstood
from apps.verify.facts import ASTRAY, FADE_OUT, MOTION, NOT_FINITE, TOLD_ENDING, TOLD_RELEASED, UNUSABLE
from apps.verify.recorded import Recorded

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

EASES_DOWN = 3
"""Since this format the force eases to a smaller one as well."""


def program_of(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return what settings make of the program: equal where nothing changes for an element."""
    if entry.get("model") == MOTION:
        return (MOTION, entry.get("program"), entry.get("table_sha256"), str(entry.get("motion")))
    try:
        law: Any = law_of(entry["law"]).identity
    except (NotUnderstood, KeyError, TypeError):
        law = str(entry.get("law"))
    element = entry.get("element", {})
    numbers = {name: float(value) for name, value in element.items() if isinstance(value, int | float)}
    place = entry.get("version") if "scene" in entry else None  # a scene is another with every version
    return (entry.get("model"), law, tuple(sorted(numbers.items())), place)


@dataclass
class History:
    """What was remembered in each tick; arrays over all rows.

    Attributes
    ----------
    before, share : (n,) array
        Part of the output that was let through before the tick, and in it.
    eases : (n,) array
        Whether the force eases from another.
    part, left, held : array
        Where it does: the weight of the force that is held, the part of it that is left, and the force [N].
    fresh : (n,) array
        Whether a program began in this tick.
    after_bad : (n,) array
        Bad ticks just before.
    bad : (n,) array
        Bad ticks up to and with this one, since the last good one.
    gain : (n,) array
        How far the fade has come.
    started_anew : (n,) array
        Whether the device had let go by itself before, so that the last command counts as none.
    """

    count: int
    before: Floats = field(init=False)
    share: Floats = field(init=False)
    gain: Floats = field(init=False)
    part: Floats = field(init=False)
    left: Floats = field(init=False)
    held: Floats = field(init=False)
    eases: Mask = field(init=False)
    fresh: Mask = field(init=False)
    after_bad: NDArray[np.int64] = field(init=False)
    bad: NDArray[np.int64] = field(init=False)
    started_anew: Mask = field(init=False)

    def __post_init__(self) -> None:
        n = self.count
        self.before, self.share, self.gain, self.part, self.left = (np.zeros(n) for _ in range(5))
        self.held = np.zeros((n, 2))
        self.eases, self.fresh, self.started_anew = (np.zeros(n, bool) for _ in range(3))
        self.after_bad, self.bad = np.zeros(n, np.int64), np.zeros(n, np.int64)


class _Memory:
    """What is remembered, and how a tick changes it."""

    def __init__(self, run: Recorded) -> None:
        self.run = run
        self.T = run.period
        self.fade_in = float(run.limit("fade_in"))
        self.watchdog = float(run.sheet("watchdog"))
        self.rise = self.fade_in
        self.gain = self.ease = 0.0
        self.held, self.held_share = (0.0, 0.0), 1.0
        self.bad, self.last_tick, self.good_tick = 0, -1, -1
        self.changed = self.fresh = False
        self.version, self.number = 0, 0
        self.programs = {version: program_of(entry) for version, entry in run.journal.items()}
        self.numbers = {version: int(entry.get("program", 0)) for version, entry in run.journal.items()}
        self.eases_down = int(run.metadata["format"]) >= EASES_DOWN

    def take(self, version: int) -> None:
        """Put other settings in force."""
        if version == self.version or version not in self.programs:
            return
        self.changed |= self.programs[version] != self.programs.get(self.version)
        self.fresh |= self.numbers[version] != self.number
        self.version, self.number = version, self.numbers[version]

    def fade(self, permission: int) -> None:
        """Rules 5 and 6: let the gain go up or down by a tick."""
        released = bool(permission & TOLD_RELEASED)
        if released or permission & TOLD_ENDING:
            self.gain = max(self.gain - self.T / FADE_OUT, 0.0)
        else:
            self.gain = min(self.gain + self.T / self.rise, 1.0) if self.rise > 0.0 else 1.0
        if self.gain == 1.0 or released:
            self.rise = self.fade_in

    def begin_easing(self, gate: float, asked: float, last: tuple[float, float]) -> None:
        """Hold the force that is there after a change of parameters."""
        self.changed = False
        share = self.gain * gate
        if not self.eases_down:
            self.rise, present = self.fade_in, math.hypot(*last)
            if self.gain * asked > present:
                self.gain = present / asked
        elif self.fade_in > 0.0 and share > 0.0:
            self.ease, self.held, self.held_share = 1.0, last, share

    def lose(self, tick: int) -> None:
        """Count a tick without a sample that can be trusted."""
        self.bad += 1
        if (tick - self.good_tick) * self.T > FADE_OUT:
            self.rise = self.fade_in
        elif self.bad == 1 and self.gain == 1.0:
            self.rise = min(FADE_OUT, self.fade_in)
        self.gain = 0.5 * self.gain if self.bad == 1 else 0.0
        self.ease = 0.0


def follow(run: Recorded) -> History:
    """Return what the envelope remembered in every tick of a recording."""
    found, memory = History(run.count), _Memory(run)
    ticks, status, gate = run.tick.tolist(), run.status.tolist(), run.column("gate").tolist()
    permission, version = run.column("permission").tolist(), run.column("settings_version").tolist()
    sampled = _sampled(run).tolist()
    command, asked = run.column("command"), np.hypot(*run.column("command_unlimited").T)
    before_gate = 1.0
    for k, tick in enumerate(ticks):
        memory.take(version[k])
        found.after_bad[k] = memory.bad
        last = (float(command[k - 1, 0]), float(command[k - 1, 1])) if k and run.impedance else (0.0, 0.0)
        if sampled[k]:
            found.fresh[k], memory.fresh = memory.fresh, False
            if max(tick - memory.last_tick, 1) * memory.T > memory.watchdog:
                memory.gain, memory.rise, last = 0.0, memory.fade_in, (0.0, 0.0)
                found.started_anew[k] = True
        if status[k] & UNUSABLE:
            memory.lose(tick)
        else:
            _good(found, memory, k, (gate[k], before_gate, permission[k]), float(asked[k]), last)
            memory.bad, memory.good_tick = 0, tick
        found.bad[k], found.gain[k] = memory.bad, memory.gain
        memory.last_tick, before_gate = tick, gate[k]
    return found


def _good(
    found: History, memory: _Memory, k: int, told: tuple[float, float, int], asked: float, last: tuple[float, float]
) -> None:
    """Enter what is remembered in a tick with a sample that can be trusted."""
    gate, before_gate, permission = told
    found.before[k] = memory.gain * before_gate
    if memory.changed and memory.run.impedance:
        memory.begin_easing(gate, asked, last)
    memory.changed = False
    memory.fade(permission)
    share = memory.gain * gate
    found.share[k] = share
    if memory.run.impedance and memory.ease > 0.0:
        found.eases[k] = True
        found.part[k] = 0.5 - 0.5 * math.cos(math.pi * memory.ease)
        found.left[k] = min(share / memory.held_share, 1.0)
        found.held[k] = memory.held
        memory.ease = max(memory.ease - memory.T / memory.fade_in, 0.0)


def _sampled(run: Recorded) -> Mask:
    """Return in which ticks a sample was trusted, whatever came of it."""
    finite = np.ones(run.count, bool)
    for name in ("position", "velocity", "force"):
        finite &= np.isfinite(run.column(name)).all(axis=1)
    own = ((run.status & ASTRAY) != 0) | (((run.status & NOT_FINITE) != 0) & finite)
    return np.asarray(run.good | own)
