"""Reconstruct the state of the envelope in every tick: fades, easing, and gaps in the samples.

The state is not recorded. It is computed from status, permission, gate and settings of the ticks. The usability of a
sample is taken from the recorded flags, which `samples` checks, so that one wrong flag does not cause findings in all
later ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.laws import law_of
from apps.verify.recorded import (
    ASTRAY,
    ENDING_BIT,
    FADE_OUT,
    MOTION,
    NOT_FINITE,
    RELEASED_BIT,
    UNUSABLE,
    Recorded,
    Window,
    copy_rows,
)
from apps.verify.text_law import NotUnderstood

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

EASES_DOWN = 3
"""First recording format in which the force also eases to a smaller one."""


def program_of(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return a key of the rendered program: equal for settings that do not change the element."""
    if entry.get("model") == MOTION:
        return (MOTION, entry.get("program"), entry.get("table_sha256"), str(entry.get("motion")))
    try:
        law: Any = law_of(entry["law"]).identity
    except (NotUnderstood, KeyError, TypeError):
        law = str(entry.get("law"))
    element = entry.get("element", {})
    numbers = {name: float(value) for name, value in element.items() if isinstance(value, int | float)}
    place = entry.get("version") if "scene" in entry else None  # every version of a scene counts as a change
    return (entry.get("model"), law, tuple(sorted(numbers.items())), place)


@dataclass
class History:
    """State of the envelope in each tick of a window.

    Attributes
    ----------
    before, share : (n,) array
        Share of the output that was transmitted before the tick and in it.
    eases : (n,) array
        Whether the force eases from a previous one.
    part, left, held : array
        During easing: weight of the held force, its remaining share, and the held force [N].
    fresh : (n,) array
        Whether a program began in this tick.
    after_bad : (n,) array
        Number of consecutive bad ticks just before this one.
    bad : (n,) array
        Number of bad ticks since the last good one, including this one.
    gain : (n,) array
        Fade gain.
    started_anew : (n,) array
        Whether the device's watchdog had released the output before, so that the last command counts as zero.
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
    """Current state of the envelope, and its update in a tick."""

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

    @property
    def is_quiet(self) -> bool:
        """Whether a quiet tick leaves the state unchanged."""
        return self.gain == 1.0 and self.ease == 0.0 and self.bad == 0 and not (self.changed or self.fresh)

    def apply_version(self, version: int) -> None:
        """Apply another version of the settings."""
        if version == self.version or version not in self.programs:
            return
        self.changed |= self.programs[version] != self.programs.get(self.version)
        self.fresh |= self.numbers[version] != self.number
        self.version, self.number = version, self.numbers[version]

    def fade(self, permission: int) -> None:
        """Apply rules 5 and 6: increase or decrease the gain by one tick."""
        released = bool(permission & RELEASED_BIT)
        if released or permission & ENDING_BIT:
            self.gain = max(self.gain - self.T / FADE_OUT, 0.0)
        else:
            self.gain = min(self.gain + self.T / self.rise, 1.0) if self.rise > 0.0 else 1.0
        if self.gain == 1.0 or released:
            self.rise = self.fade_in

    def begin_easing(self, gate: float, wanted: float, last: tuple[float, float]) -> None:
        """Start easing from the present force after a change of parameters."""
        self.changed = False
        share = self.gain * gate
        if not self.eases_down:
            self.rise, present = self.fade_in, math.hypot(*last)
            if self.gain * wanted > present:
                self.gain = present / wanted
        elif self.fade_in > 0.0 and share > 0.0:
            self.ease, self.held, self.held_share = 1.0, last, share

    def lose(self, tick: int) -> None:
        """Count a tick without a trusted sample."""
        self.bad += 1
        if (tick - self.good_tick) * self.T > FADE_OUT:
            self.rise = self.fade_in
        elif self.bad == 1 and self.gain == 1.0:
            self.rise = min(FADE_OUT, self.fade_in)
        self.gain = 0.5 * self.gain if self.bad == 1 else 0.0
        self.ease = 0.0


class EnvelopeTracker:
    """Reconstructs the state of the envelope over consecutive windows."""

    def __init__(self, run: Recorded) -> None:
        self._memory = _Memory(run)
        self._last: History | None = None
        self._before_gate = 1.0

    def follow(self, run: Window) -> History:
        """Return the state of the envelope in every tick of the next window."""
        found, memory, skip = History(run.count), self._memory, run.skip
        if self._last is not None and skip:
            copy_rows(found, slice(0, skip), self._last, slice(-skip, None))
        status, gate, permission = run.status, run.column("gate"), run.column("permission")
        version = run.column("settings_version")
        finite = np.ones(run.count, bool)
        for name in ("position", "velocity", "force"):
            finite &= np.isfinite(run.column(name)).all(axis=1)
        rejected_output = ((status & ASTRAY) != 0) | (((status & NOT_FINITE) != 0) & finite)
        sampled = run.good | rejected_output  # the sample was trusted, even if the element's output was rejected
        command, wanted = run.column("command"), np.hypot(*run.column("command_unlimited").T)
        quiet = self._quiet(run, sampled, status, permission, gate, version)
        index = np.where(quiet, len(quiet), np.arange(len(quiet)))
        ends = np.asarray(np.minimum.accumulate(index[::-1])[::-1])
        ticks, status, gate = run.tick.tolist(), status.tolist(), gate.tolist()
        permission, version, sampled = permission.tolist(), version.tolist(), sampled.tolist()
        k = skip
        while k < run.count:
            if quiet[k] and memory.is_quiet:
                end = ends[k]  # until then the envelope is fully faded in
                found.before[k:end] = found.share[k:end] = found.gain[k:end] = 1.0
                memory.last_tick = memory.good_tick = ticks[end - 1]
                self._before_gate, memory.rise = gate[end - 1], memory.fade_in
                k = end
                continue
            last = self._begin_tick(found, run, k, ticks[k], sampled[k], version[k], command)
            if status[k] & UNUSABLE:
                memory.lose(ticks[k])
            else:
                _good(found, memory, k, (gate[k], self._before_gate, permission[k]), float(wanted[k]), last)
                memory.bad, memory.good_tick = 0, ticks[k]
            found.bad[k], found.gain[k] = memory.bad, memory.gain
            memory.last_tick, self._before_gate = ticks[k], gate[k]
            k += 1
        self._last = found
        return found

    def _begin_tick(
        self, found: History, run: Window, k: int, tick: int, sampled: bool, version: int, command: Floats
    ) -> tuple[float, float]:
        """Update the state at the beginning of a tick; return the previous command, or zeros."""
        memory = self._memory
        memory.apply_version(version)
        found.after_bad[k] = memory.bad
        last = (float(command[k - 1, 0]), float(command[k - 1, 1])) if k and run.impedance else (0.0, 0.0)
        if sampled:
            found.fresh[k], memory.fresh = memory.fresh, False
            if max(tick - memory.last_tick, 1) * memory.T > memory.watchdog:
                memory.gain, memory.rise, last = 0.0, memory.fade_in, (0.0, 0.0)
                found.started_anew[k] = True
        return last

    def _quiet(self, run: Window, sampled: Mask, status: Any, permission: Any, gate: Any, version: Any) -> Mask:
        """Return the ticks that do not change the state of an envelope that is fully faded in."""
        quiet = sampled & ((status & UNUSABLE) == 0) & (permission == 0) & (gate == 1.0)
        quiet[1:] &= (gate[:-1] == 1.0) & (version[1:] == version[:-1])
        quiet &= np.maximum(np.diff(run.tick, prepend=-1), 1) * run.period <= self._memory.watchdog
        quiet[: run.skip] = False
        if not run.skip:
            quiet[:1] = False
        return np.asarray(quiet)


def _good(
    found: History, memory: _Memory, k: int, inputs: tuple[float, float, int], wanted: float, last: tuple[float, float]
) -> None:
    """Store the state in a tick with a trusted sample."""
    gate, before_gate, permission = inputs
    found.before[k] = memory.gain * before_gate
    if memory.changed and memory.run.impedance:
        memory.begin_easing(gate, wanted, last)
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
