"""The safety envelope (`docs/safety.md`): its state in every tick, and its rules 1 to 11.

The state (fades, easing, and gaps in the samples) is not recorded. It is computed from status, permission, gate and
settings of the ticks. The usability of a sample is taken from the recorded flags, which `Samples` checks, so that one
wrong flag does not cause findings in all later ticks.

Rules 1 to 3 concern the samples and the safe output. Rules 4 to 11 (`docs/safety.md`) are applied to the recorded
``command_unlimited``. The recorded command must agree within the rounding of its terms, and each flag must be set
exactly where its rule acts.

On an admittance device the rules act on the velocity of the reference; the command is the reference. The velocity is
the difference of recorded references over a period, with a rounding error of a few eps |c|/T.

A flag is uncertain where the deciding value is within rounding of its limit. There it may be set or not. The vector
after a rule is continuous at the limit unless stated otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.findings import Findings
from apps.verify.laws import NotUnderstood, law_of, length, units
from apps.verify.recorded import (
    EPS,
    FADE_OUT,
    FLAGS,
    MOTION,
    UNUSABLE,
    Flag,
    Floats,
    Mask,
    Permission,
    Recorded,
    Stretch,
    Window,
    copy_rows,
    rounding,
)

ENVELOPE = UNUSABLE | Flag.PASSIVITY | Flag.RELEASED | Flag.FADE | Flag.LIMITED | Flag.THERMAL | Flag.SLEW
ENVELOPE |= Flag.SPEED | Flag.ENERGY | Flag.WORKSPACE

CLOCK_ROUNDING = 1.0 + 1e-9
"""Factor on limits for the rounding of a clock that has run for days."""

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
    warm : (n,) array
        Bound of the norm of the force with warm motors [N]; infinite without a thermal limit.
    started_anew : (n,) array
        Whether the device's watchdog had released the output before, so that the last command counts as zero.
    """

    def __init__(self, count: int) -> None:
        self.before, self.share, self.gain, self.part, self.left = (np.zeros(count) for _ in range(5))
        self.warm = np.full(count, math.inf)
        self.held = np.zeros((count, 2))
        self.eases, self.fresh, self.started_anew = (np.zeros(count, bool) for _ in range(3))
        self.after_bad, self.bad = (np.zeros(count, np.int64) for _ in range(2))


WARM_MARGIN = 0.1
"""Share of the permitted heat of the motors, just below it, over which the bound of the force decreases."""


class Motors:
    """Heat of the motors of an impedance device, relative to the heat of the continuous force.

    It follows the squared force like a first-order low-pass filter whose time constant is such that the largest force,
    from cold, reaches the margin after the time in the data sheet.
    """

    def __init__(self, run: Recorded) -> None:
        self._most, self._lasting = float(run.sheet("max_force")), float(run.sheet("continuous_force"))
        duration, self._decay = float(run.sheet("full_force_time")), 0.0
        if run.impedance and 0.0 < self._lasting < self._most and duration > 0.0:
            remaining = 1.0 - (1.0 - WARM_MARGIN) * (self._lasting / self._most) ** 2
            self._decay = -math.log(remaining) * run.period / duration
        self._heat, self._last = 0.0, -1

    def bound(self, ticks: list[int], commands: Floats, first: int) -> Floats:
        """Return the bound of the force [N] in the rows from `first` on; the others only show the last command."""
        if self._decay == 0.0:
            return np.full(len(ticks) - first, math.inf)
        heats = []
        for k in range(first, len(ticks)):
            force = float(np.hypot(*commands[k - 1])) if k else 0.0
            final, periods = (force / self._lasting) ** 2, ticks[k] - self._last
            self._heat, self._last = final + (self._heat - final) * math.exp(-self._decay * periods), ticks[k]
            heats.append(self._heat)
        share = np.clip((1.0 - np.array(heats)) / WARM_MARGIN, 0.0, 1.0)
        bound: Floats = np.sqrt(share * self._most**2 + (1.0 - share) * self._lasting**2)
        return bound


class EnvelopeTracker:
    """Reconstructs the state of the envelope over consecutive windows."""

    def __init__(self, run: Recorded) -> None:
        self._impedance, self._T = run.impedance, run.period
        self._fade_in, self._watchdog = float(run.limit("fade_in")), float(run.sheet("watchdog"))
        self._rise = self._fade_in
        self._gain = self._ease = 0.0
        self._held, self._held_share = (0.0, 0.0), 1.0
        self._bad, self._last_tick, self._good_tick = 0, -1, -1
        self._changed = self._fresh = False
        self._version = self._number = 0
        self._programs = {version: program_of(entry) for version, entry in run.journal.items()}
        self._numbers = {version: int(entry.get("program", 0)) for version, entry in run.journal.items()}
        self._eases_down = int(run.metadata["format"]) >= EASES_DOWN
        self._last: History | None = None
        self._before_gate = 1.0
        self._motors = Motors(run)

    def follow(self, run: Window) -> History:
        """Return the state of the envelope in every tick of the next window."""
        found, skip = History(run.count), run.skip
        if self._last is not None and skip:
            copy_rows(found, slice(0, skip), self._last, slice(-skip, None))
        gates, permissions, versions = (run.column(name) for name in ("gate", "permission", "settings_version"))
        finite = np.ones(run.count, bool)
        for name in ("position", "velocity", "force"):
            finite &= np.isfinite(run.column(name)).all(axis=1)
        rejected_output = ((run.status & Flag.ASTRAY) != 0) | (((run.status & Flag.NOT_FINITE) != 0) & finite)
        trusted = run.good | rejected_output  # the sample was trusted, even if the element's output was rejected
        command, wanted = run.column("command"), np.hypot(*run.column("command_unlimited").T)
        # Ticks that do not change the state of an envelope that is fully faded in.
        quiet = trusted & run.good & (permissions == 0) & (gates == 1.0)
        quiet[1:] &= (gates[:-1] == 1.0) & (versions[1:] == versions[:-1])
        quiet &= np.maximum(np.diff(run.tick, prepend=-1), 1) * run.period <= self._watchdog
        quiet[: max(skip, 1)] = False
        index = np.where(quiet, len(quiet), np.arange(len(quiet)))
        ends = np.asarray(np.minimum.accumulate(index[::-1])[::-1])
        ticks, good, gate = run.tick.tolist(), run.good.tolist(), gates.tolist()
        permission, version, sampled = permissions.tolist(), versions.tolist(), trusted.tolist()
        found.warm[skip:] = self._motors.bound(ticks, command, skip)
        k = skip
        while k < run.count:
            steady = self._gain == 1.0 and self._ease == 0.0 and self._bad == 0
            if quiet[k] and steady and not (self._changed or self._fresh):
                end = ends[k]  # until then the envelope is fully faded in
                found.before[k:end] = found.share[k:end] = found.gain[k:end] = 1.0
                self._last_tick = self._good_tick = ticks[end - 1]
                self._before_gate, self._rise = gate[end - 1], self._fade_in
                k = end
                continue
            if version[k] != self._version and version[k] in self._programs:
                self._changed |= self._programs[version[k]] != self._programs.get(self._version)
                self._fresh |= self._numbers[version[k]] != self._number
                self._version, self._number = version[k], self._numbers[version[k]]
            found.after_bad[k] = self._bad
            last = (float(command[k - 1, 0]), float(command[k - 1, 1])) if k and run.impedance else (0.0, 0.0)
            if sampled[k]:
                found.fresh[k], self._fresh = self._fresh, False
                if max(ticks[k] - self._last_tick, 1) * self._T > self._watchdog:
                    self._gain, self._rise, last = 0.0, self._fade_in, (0.0, 0.0)
                    found.started_anew[k] = True
            if good[k]:
                self._apply_good(found, k, gate[k], permission[k], float(wanted[k]), last)
                self._bad, self._good_tick = 0, ticks[k]
            else:
                self._apply_bad(ticks[k])
            found.bad[k], found.gain[k] = self._bad, self._gain
            self._last_tick, self._before_gate = ticks[k], gate[k]
            k += 1
        self._last = found
        return found

    def _apply_good(
        self, found: History, k: int, gate: float, permission: int, wanted: float, last: tuple[float, float]
    ) -> None:
        """Apply rules 5 and 6 to a tick with a trusted sample, and store the state in it."""
        found.before[k] = self._gain * self._before_gate
        share = self._gain * gate
        if self._changed and self._impedance and not self._eases_down:
            self._rise, present = self._fade_in, math.hypot(*last)
            if self._gain * wanted > present:
                self._gain = present / wanted
        elif self._changed and self._impedance and self._fade_in > 0.0 and share > 0.0:
            self._ease, self._held, self._held_share = 1.0, last, share  # from the present force
        self._changed = False
        released = bool(permission & Permission.RELEASED)
        if released or permission & Permission.ENDING:
            self._gain = max(self._gain - self._T / FADE_OUT, 0.0)
        else:
            self._gain = min(self._gain + self._T / self._rise, 1.0) if self._rise > 0.0 else 1.0
        if self._gain == 1.0 or released:
            self._rise = self._fade_in
        found.share[k] = share = self._gain * gate
        if self._impedance and self._ease > 0.0:
            found.eases[k] = True
            found.part[k] = 0.5 - 0.5 * math.cos(math.pi * self._ease)
            found.left[k] = min(share / self._held_share, 1.0)
            found.held[k] = self._held
            self._ease = max(self._ease - self._T / self._fade_in, 0.0)

    def _apply_bad(self, tick: int) -> None:
        """Count a tick without a trusted sample."""
        self._bad += 1
        if (tick - self._good_tick) * self._T > FADE_OUT:
            self._rise = self._fade_in
        elif self._bad == 1 and self._gain == 1.0:
            self._rise = min(FADE_OUT, self._fade_in)
        self._gain = 0.5 * self._gain if self._bad == 1 else 0.0
        self._ease = 0.0


_REASONS = Flag.NOT_FINITE | Flag.STALE | Flag.IMPLAUSIBLE | Flag.FOLLOWING_ERROR
_NEAR = 8.0 * EPS


class Samples:
    """Checks samples over consecutive windows.

    Between windows it keeps whether any sample was trusted, the position of the last plausible sample, and tick and age
    of the last sample that counted (tick -1 if none).
    """

    def __init__(self) -> None:
        self._started = False
        self._place: Floats | None = None
        self._tick, self._age = -1, 0.0

    def check(self, run: Window, findings: Findings) -> None:
        """Check that exactly the samples that break a rule were rejected."""
        own = slice(run.skip, None)
        tick, flags, count = run.tick[own], run.status[own] & UNUSABLE, run.count - run.skip
        position, velocity, force = (run.column(name)[own] for name in ("position", "velocity", "force"))
        age, fast = run.column("sample_age")[own], float(run.limit("plausible_speed"))
        finite = np.ones(count, bool)
        for values in (position, velocity, force):
            finite &= np.isfinite(values[:, 0] + values[:, 1])
        # Samples that were plausible, and samples that count as the last one.
        plausible = (flags & (Flag.NOT_FINITE | Flag.STALE | Flag.IMPLAUSIBLE)) == 0
        plausible |= (flags & Flag.NOT_FINITE != 0) & np.isfinite(position).all(axis=1)
        if not run.impedance:  # implausible only because of the force: the position was trusted
            sensor_range = float(run.sheet("max_force")) * CLOCK_ROUNDING
            beyond = ((flags & Flag.IMPLAUSIBLE) != 0) & (length(force) > sensor_range)
            plausible |= np.asarray(beyond & (length(velocity) <= fast))
        counted = plausible | ((flags & Flag.IMPLAUSIBLE) != 0)
        trusted = (flags & _REASONS) == 0
        started = np.concatenate(([False], np.logical_or.accumulate(trusted)[:-1])) | self._started
        # Distance of each sample to the last plausible one [m], and the time between them [s].
        latest, when = _latest(plausible), _latest(counted)
        origin = np.broadcast_to(np.zeros(2) if self._place is None else self._place, (count, 2))
        before = np.where((latest >= 0)[:, None], position[np.maximum(latest, 0)], origin)
        known = started & ((latest >= 0) | (self._place is not None))
        moved = length(np.where(known[:, None], position - before, 0.0))
        last_tick = np.where(when >= 0, tick[np.maximum(when, 0)], self._tick)
        aged = np.where(plausible[np.maximum(when, 0)], age[np.maximum(when, 0)], 0.0)
        last_age = np.where(when >= 0, aged, self._age)
        time = np.maximum(tick - last_tick, 1) * run.period + np.maximum(last_age - age, 0.0)
        # The first rule that a sample breaks determines its flag.
        expected = np.where(finite, 0, Flag.NOT_FINITE)
        stale = ~(age <= float(run.limit("max_sample_age")) * CLOCK_ROUNDING)
        expected[stale & (expected == 0)] = Flag.STALE
        doubtful = np.zeros(count, bool)
        rules: list[tuple[Any, Any, int]] = [
            (moved, fast * time, Flag.IMPLAUSIBLE),
            (length(velocity), fast, Flag.IMPLAUSIBLE),
        ]
        if not run.impedance:
            off = np.where(started[:, None], position - run.reference[own], 0.0)
            rules.append((length(force), sensor_range, Flag.IMPLAUSIBLE))
            rules.append((length(off), float(run.limit("max_following_error", 1000.0)), Flag.FOLLOWING_ERROR))
        for value, limit, flag in rules:
            doubtful |= (np.abs(value - limit) <= _NEAR * limit) & (expected == 0)
            expected[(value > limit) & (expected == 0)] = flag
        self._started |= bool(trusted.any())
        if plausible.any():
            self._place = position[np.flatnonzero(plausible)[-1]]
        if counted.any():
            last = np.flatnonzero(counted)[-1]
            self._tick, self._age = int(tick[last]), float(age[last]) if plausible[last] else 0.0
        of_output = (flags == Flag.NOT_FINITE) | ((flags == Flag.ASTRAY) & run.in_motion[own])
        of_output &= expected == 0
        findings.where(
            "sample",
            tick,
            (flags != expected) & ~doubtful & ~of_output,
            lambda k: f"the sample was {_words_of(int(flags[k]))}, by the rules it is {_words_of(int(expected[k]))}",
        )
        words = "the element's output is said to have been no finite number, which the rows cannot show"
        findings.lack_where("sample", tick, of_output & (flags == Flag.NOT_FINITE), words)


def _latest(where: Mask) -> NDArray[np.int64]:
    """Return the index of the latest true entry before each entry; -1 if none."""
    index = np.where(where, np.arange(len(where)), -1)
    return np.concatenate(([-1], np.maximum.accumulate(index)[:-1]))


def _words_of(flag: int) -> str:
    words = {
        0: "usable",
        Flag.NOT_FINITE: "refused as not finite",
        Flag.STALE: "refused as too old",
        Flag.IMPLAUSIBLE: "refused as implausible",
        Flag.FOLLOWING_ERROR: "refused because the arm does not follow",
        Flag.ASTRAY: "refused because the motion is not followed",
    }
    return words.get(flag, f"refused with the flags {flag:#x}")


def check_safe_output(run: Window, history: History, findings: Findings) -> None:
    """Check that ticks without a usable sample sent the safe output while the element stayed at rest."""
    bad = np.flatnonzero(~run.good)
    bad = bad[bad >= run.skip]
    if not len(bad):
        return
    ticks, last = run.tick[bad], run.last[bad] if run.impedance else run.reference[bad]
    command = run.column("command")[bad]
    first = history.bad[bad] == 1
    if run.impedance:
        anew = history.started_anew[bad]
        safe = np.where((first & ~anew)[:, None], 0.5, 0.0) * last
        words = "the safe output is half of the last force, then none"
    else:
        safe, words = last, "the safe output is the last reference"
        before = run.column("command")[np.maximum(bad - 1, 0)]
        unborn = np.isnan(command) & (np.isnan(before) | (bad + run.first == 0)[:, None])  # before the first reference
        command, safe = np.where(unborn, 0.0, command), np.where(unborn, 0.0, safe)
    findings.where("safe output", ticks, (command != safe).any(axis=1), f"{words}, but another command was sent")
    own = (run.status[bad] & ENVELOPE) != (run.status[bad] & UNUSABLE)
    findings.where("flag", ticks, own, "a tick with the safe output has flags of rules that were not applied")
    still = np.zeros(len(bad), bool)
    for name in ("friction_force", "sliding_velocity"):
        still |= (run.column(name)[bad] != 0.0).any(axis=1)
    still |= run.column("sticking")[bad] != 0
    findings.where("safe output", ticks, still, "the element did not wait at rest while no sample could be trusted")
    unlimited = run.column("command_unlimited")[bad]
    same = (unlimited == run.column("command")[bad]) | np.isnan(unlimited)
    findings.where("safe output", ticks, ~same.all(axis=1), "another output than the safe one is recorded")


SPEED_MARGIN = 0.1
"""Share of the speed limit, just below it, over which a driving force decreases to zero."""

WARM_ROUNDING = 1e-9
"""Relative rounding error of the bound with warm motors, whose heat is a sum over a long time."""


class Limited:
    """Force or velocity vectors while the rules are applied.

    Attributes
    ----------
    vector : (n, 2) array
        Vector after the rules already applied.
    error : (n,) array
        Bound on its rounding error.
    flags, doubtful : (n,) int array
        Flags that the rules set, and uncertain flags.
    """

    def __init__(self, vector: Floats, error: Floats) -> None:
        self.vector, self.error = vector, error
        self.flags, self.doubtful = (np.zeros(len(vector), np.int64) for _ in range(2))

    def mark(self, flag: int, where: Mask, doubtful: Mask | None = None) -> None:
        """Set a flag, and mark where it is uncertain."""
        self.flags |= np.where(where, flag, 0)
        if doubtful is not None:
            self.doubtful |= np.where(doubtful, flag, 0)

    def norm(self, limit: float) -> None:
        """Apply rule 7: limit the norm to `limit` and keep the direction."""
        size = length(self.vector)
        over = size > limit
        self.mark(Flag.LIMITED, over, np.abs(size - limit) <= self.error)
        self.vector = np.where(over[:, None], self.vector * (limit / np.maximum(size, 1e-300))[:, None], self.vector)

    def warm(self, bound: Floats) -> None:
        """Apply rule 7 with warm motors: limit the norm to the `bound` of each tick and keep the direction."""
        bounded = np.isfinite(bound)
        self.error = self.error + WARM_ROUNDING * np.where(bounded, bound, 0.0)
        size = length(self.vector)
        over = size > bound
        self.mark(Flag.THERMAL, over, bounded & (np.abs(size - bound) <= self.error))
        factor = np.where(over, bound, 1.0) / np.where(over, size, 1.0)
        self.vector = self.vector * factor[:, None]

    def slew(self, last: Floats, step: float) -> None:
        """Apply rule 8: limit the change from the last value to `step`."""
        change = self.vector - last
        size = length(change)
        over = size > step
        self.mark(Flag.SLEW, over, np.abs(size - step) <= self.error)
        shortened = last + change * (step / np.maximum(size, 1e-300))[:, None]
        self.vector = np.where(over[:, None], shortened, self.vector)

    def _takes(self, direction: Floats, share: Floats, where: Mask, doubtful: Mask, flag: int) -> None:
        """Remove a share of the component along a direction, if that component is positive."""
        along = units(direction)
        part = (self.vector * along).sum(axis=1)
        near = np.abs(part) <= self.error
        acts = where & (part > 0.0)
        self.mark(flag, acts, (doubtful & (part > -self.error)) | (near & (where | doubtful)))
        self.vector = self.vector - np.where(acts, share * part, 0.0)[:, None] * along

    def driving(self, velocity: Floats, limit: float) -> None:
        """Apply rule 9: reduce a driving force near the speed `limit`, to zero at the limit."""
        margin = SPEED_MARGIN * limit
        excess = length(velocity) - (limit - margin)
        share = np.clip(excess / margin, 0.0, 1.0)
        self._takes(velocity, share, excess > 0.0, np.abs(excess) <= 16.0 * EPS * limit, Flag.SPEED)

    def energy(self, direction: Floats, spent: Mask) -> None:
        """Apply rule 10: where the energy is `spent`, remove the component along a direction."""
        self._takes(direction, np.ones(len(spent)), spent, np.zeros(len(spent), bool), Flag.ENERGY)

    def inside(self, position: Floats, low: Floats, high: Floats, *, marks: bool = True) -> None:
        """Apply rule 11 to a force: outside the workspace, remove outward components."""
        for i in range(2):
            force = self.vector[:, i]
            beyond, before = position[:, i] > high[i], position[:, i] < low[i]
            stops = (beyond & (force > 0.0)) | (before & (force < 0.0))
            if marks:
                near = (beyond | before) & (np.abs(force) <= self.error)
                self.mark(Flag.WORKSPACE, stops, near)
            self.vector[:, i] = np.where(stops, 0.0, force)


def check_impedance(stretch: Stretch, history: History, added: tuple[Floats, Floats], findings: Findings) -> None:
    """Check the commands and flags of a `stretch`.

    Parameters
    ----------
    stretch : Stretch
        Ticks with the same settings.
    history : History
        State of the envelope.
    added : (2,) tuple of (n,) arrays
        Damping that the passivity controller added [N s/m], and the error bound of its force [N] (`energy.Controller`).
    findings : Findings
        Receives the findings.
    """
    run, rows, velocity, (damping, loose) = stretch.run, stretch.rows, stretch["velocity"], added
    last = np.where(history.started_anew[rows][:, None], 0.0, stretch.last)
    # Passivity damping, and rules 5 and 6: fades and easing.
    share, part, left = (array[rows][:, None] for array in (history.share, history.part, history.left))
    held, damped = history.held[rows], -damping[:, None] * velocity
    wanted = stretch["command_unlimited"] + damped
    through = share * wanted
    error = rounding(length(wanted), length(damped), length(held), length(last)) + loose
    limited = Limited(through + part * (left * held - through), error)
    limited.mark(Flag.FADE, (history.gain[rows] < 1.0) | (stretch["gate"] < 1.0) | history.eases[rows])
    limited.mark(Flag.RELEASED, (stretch["permission"].astype(np.int64) & Permission.RELEASED) != 0)
    limited.mark(Flag.PASSIVITY, damping > 0.0)
    # Rules 7 to 11.
    spent, (low, high) = _spent(stretch), _edges(run)
    limited.norm(float(run.limit("max_force")))
    limited.warm(history.warm[rows])
    limited.slew(last, float(run.limit("max_force_rate")) * run.period)

    def stop_driving(*, marks: bool) -> None:
        limited.driving(velocity, float(run.limit("max_speed")))
        limited.energy(velocity, spent)
        limited.inside(stretch["position"], low, high, marks=marks)

    stop_driving(marks=True)
    stopped, torn = (limited.flags & Flag.WORKSPACE) != 0, np.zeros(len(stretch), bool)
    if stopped.any():
        # The part of a braking force that rule 11 leaves may drive the handle: rules 9 to 11 apply again.
        before, flags, doubtful = limited.vector.copy(), limited.flags.copy(), limited.doubtful.copy()
        stop_driving(marks=False)
        limited.vector = np.where(stopped[:, None], limited.vector, before)
        limited.flags = np.where(stopped, limited.flags, flags)
        limited.doubtful = np.where(stopped, limited.doubtful, doubtful)
        power = (limited.vector * velocity).sum(axis=1)
        acts = stopped & ((limited.flags & (Flag.SPEED | Flag.ENERGY)) != 0)
        limited.vector = np.where((acts & (power > 0.0))[:, None], 0.0, limited.vector)
        # Where rounding decides whether the final rules remove the whole force.
        torn = acts & (np.abs(power) <= limited.error * np.maximum(length(velocity), 1e-300))
    compare(stretch, limited, stretch["command"], limited.error, torn, "N", findings)


def _spent(stretch: Stretch) -> Mask:
    """Return the ticks in which rule 10 applies; never in a prescribed motion."""
    if stretch.settings.get("model") == MOTION:
        return np.zeros(len(stretch), bool)
    return np.asarray(stretch["injected_energy"] > float(stretch.run.limit("max_energy")))


def _edges(run: Window) -> tuple[Floats, Floats]:
    """Return the lower and the upper corner of the workspace [m]."""
    device = run.metadata["device"]
    return np.array(device["workspace_min"], float), np.array(device["workspace_max"], float)


def compare(
    stretch: Stretch, limited: Limited, command: Floats, error: Floats, torn: Mask, unit: str, findings: Findings
) -> None:
    """Compare commands and flags of good ticks with the rules.

    Where `torn`, zero is accepted too.
    """
    good, tick = stretch.good, stretch.tick
    off = length(command - limited.vector)
    off = np.where(torn & (length(command) <= error), 0.0, off)
    words = "the command is not what the rules of the envelope make of the output"
    findings.residual("command", "command", tick, off, error, unit, words, good)
    status = stretch.run.status[stretch.rows]
    wrong = (status ^ limited.flags) & ENVELOPE & ~UNUSABLE & ~limited.doubtful
    for name, flag in FLAGS.items():
        broken = good & ((wrong & flag) != 0)
        findings.where(
            "flag",
            tick,
            broken,
            lambda k, name=name, flag=flag: (  # type: ignore[misc]
                f"the flag {name} is set, but its rule did nothing"
                if status[k] & flag
                else f"the rule of the flag {name} acted, but the flag is not set"
            ),
        )


def check_force_bounds(run: Window, findings: Findings) -> None:
    """Check every command of an impedance device against the limits, independently of its cause."""
    command, tick = run.column("command"), run.tick
    norm, most = length(command), float(run.limit("max_force"))
    beyond = ~(norm <= most * (1.0 + 1e-12))
    findings.where("limit", tick, beyond, lambda k: f"a force of {norm[k]:.6g} N was sent; the limit is {most:g} N")
    step = float(run.limit("max_force_rate")) * run.period
    change = length(command - run.last)
    taken = run.status & (Flag.SPEED | Flag.ENERGY | Flag.WORKSPACE | UNUSABLE)
    fast = run.good & (taken == 0) & ~(change <= step * (1.0 + 1e-9) + 1e-12 * most)
    fast &= np.concatenate(([True], (taken[:-1] & UNUSABLE) == 0)) if len(fast) else fast
    findings.where(
        "limit", tick, fast, lambda k: f"the force changed by {change[k]:.6g} N in a tick; the limit is {step:g} N"
    )


def braking(history: History, rows: slice) -> Mask:
    """Return the ticks of a fade-out.

    There the reference brakes, and the hand's force acts in full.
    """
    share = history.share[rows]
    return np.asarray((share < history.before[rows]) | (share == 0.0))


def velocity_blur(stretch: Stretch) -> Floats:
    """Return the error bound of velocities that are differences of references [m/s], (n, 1)."""
    size = np.maximum(length(stretch["command"]), length(stretch.reference))
    size = np.maximum(np.where(np.isfinite(size), size, 0.0), length(stretch["command_unlimited"]))
    blurred: Floats = 4.0 * EPS * size[:, None] / stretch.run.period
    return blurred


def output_of(stretch: Stretch) -> Floats:
    """Return the velocity output of the element, (n, 2) [m/s]."""
    output: Floats = (stretch["command_unlimited"] - stretch.reference) / stretch.run.period
    return output


def check_admittance(stretch: Stretch, history: History, findings: Findings) -> None:
    """Check the references and flags of a `stretch`."""
    run, rows, T = stretch.run, stretch.rows, stretch.run.period
    share, force, output = history.share[rows], stretch["force"], output_of(stretch)
    last = np.where(history.started_anew[rows][:, None], 0.0, stretch.last)
    wanted = np.where(braking(history, rows)[:, None], share[:, None] * output, output)
    limited = Limited(wanted, rounding(length(output), length(last)) + 2.0 * velocity_blur(stretch)[:, 0])
    limited.mark(Flag.FADE, (history.gain[rows] < 1.0) | (stretch["gate"] < 1.0))
    limited.mark(Flag.RELEASED, (stretch["permission"].astype(np.int64) & Permission.RELEASED) != 0)
    limited.norm(float(run.limit("max_speed")))
    limited.slew(last, float(run.limit("max_acceleration")) * T)
    spent, edges = _spent(stretch), np.stack(_edges(run))
    limited.energy(-force, spent)
    # Rule 11: stop the reference at the edge with 8/9 of the maximum deceleration. Stopping from v in steps of T takes
    # v^2/(2 a) + v T/2.
    a = float(run.limit("max_acceleration")) * 8.0 / 9.0
    half = 0.5 * a * T
    for i, (low, high) in enumerate(edges.T.tolist()):
        x, v = stretch.reference[:, i], limited.vector[:, i]
        room = np.where(v > 0.0, np.maximum(high - x, 0.0), np.maximum(x - low, 0.0))
        fastest = np.minimum(np.sqrt(half * half + 2.0 * a * room) - half, room / T)
        limited.error = limited.error + 8.0 * EPS * (np.abs(x) + math.hypot(low, high)) / T
        limited.mark(Flag.WORKSPACE, np.abs(v) > fastest, np.abs(np.abs(v) - fastest) <= limited.error)
        limited.vector[:, i] = np.where(np.abs(v) > fastest, np.copysign(fastest, v), v)
    against = (limited.vector * force).sum(axis=1)
    stopped = ((limited.flags & Flag.WORKSPACE) != 0) & spent
    near = np.abs(against) <= limited.error * length(force)
    limited.mark(Flag.ENERGY, stopped & (against < 0.0), stopped & near)
    limited.vector = np.where((stopped & (against < 0.0))[:, None], 0.0, limited.vector)
    limited.vector = stretch.reference + T * limited.vector
    slack = T * limited.error + rounding(length(stretch.reference))
    compare(stretch, limited, stretch["command"], slack, np.zeros(len(stretch), bool), "m", findings)


def check_reference_bounds(run: Window, findings: Findings) -> None:
    """Check every reference of an admittance device against the limits, independently of its cause."""
    command, tick, T = run.column("command"), run.tick, run.period
    known = np.isfinite(command).all(axis=1)
    slack = 8.0 * EPS * np.where(known, length(command), 0.0) / T
    speed, most = length(command - run.reference) / T, float(run.limit("max_speed"))
    beyond = known & ~(speed <= most * (1.0 + 1e-12) + slack)
    findings.where("limit", tick, beyond, lambda k: f"the reference moved at {speed[k]:.6g} m/s; the limit is {most:g}")
    low, high = _edges(run)
    edge = 1e-9 * (1.0 + np.abs(np.stack((low, high))).max())
    outward = ((command > high + edge) & (command > run.reference)) | (
        (command < low - edge) & (command < run.reference)
    )
    findings.where(
        "limit", tick, outward.any(axis=1) & known, "the reference went on outwards beyond the edge of the workspace"
    )
    sent = run.good & ~known
    findings.where("command", tick, sent, "no finite reference was sent in a tick with a usable sample")
