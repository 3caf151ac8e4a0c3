"""Procedures other than QUEST+ (staircases, fixed levels, interleaved tracks), and reproducible randomisation.

Every random value has a separate seed, derived from its index. The values of trial 7 do not depend on whether the
values of trials 1 to 6 were drawn before, or in the same process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.random import SeedSequence

from apps.experiment.procedures.settings import (
    AdjustmentSettings,
    Carried,
    ConstantSettings,
    EstimationSettings,
    QuestSettings,
    StaircaseSettings,
    procedure_settings,
)
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.experiment.procedures.quest import QuestPlus

    Procedure: TypeAlias = "Staircase | FixedLevels | QuestPlus"
    """Procedure, which selects the levels of a track from the answers alone."""

_PER_E_FOLD = {"log": 1.0 / math.log(10.0), "dB": 20.0 / math.log(10.0)}
"""Units of a logarithmic scale for a factor of e."""

_ROUNDING = 1e-9
"""Tolerance at the limits, relative to a step.

A step down and up again may exceed a limit by a rounding error.
"""


def threshold_of(procedure: Procedure) -> tuple[float, float | None] | None:
    """Return the threshold of a staircase or QUEST+, and its standard deviation of ln(threshold) if it is known.

    A staircase with too few reversals has its last level. The result is None for other procedures and without trials.
    """
    report = procedure.report()
    if report["kind"] not in ("staircase", "quest+") or not report["trials"]:
        return None
    return report["estimate"] or procedure.level(), report["log_sd"] if report["kind"] == "quest+" else None


def make_procedure(
    table: Mapping[str, Any], *, guess: float, seed: SeedSequence, carried: Carried | None = None
) -> Procedure:
    """Return a new procedure.

    Parameters
    ----------
    table : mapping
        ``kind`` and its settings, as in an experiment file.
    guess : float
        Probability of a correct answer without a stimulus: 1/m in a task with m alternatives, the false alarm rate (0
        if unknown) in a yes/no task.
    seed : SeedSequence
        Seed of the track, which deterministic procedures ignore.
    carried : Carried, optional
        Threshold with which a staircase or QUEST+ begins, limited to its levels. Other procedures ignore it.

    Raises
    ------
    ConfigurationError
        If the table is invalid.

    Examples
    --------
    >>> from apps.experiment import make_procedure, trial_seed
    >>> table = {"kind": "staircase", "start": 1.0, "minimum": 0.1, "maximum": 2.0, "down": 2, "scale": "linear",
    ...          "steps": [0.2], "ratio": 1.0, "initial_rule": False}  # levels and steps in N
    >>> staircase = make_procedure(table, guess=0.5, seed=trial_seed(4, "P01", 1, 1, 0))
    >>> for correct in (True, True, False):
    ...     staircase.add_outcome(staircase.level(), correct)
    >>> round(staircase.level(), 6), staircase.finished, staircase.report()["trials"]
    (1.0, False, 3)
    """
    settings, kind = procedure_settings(table), table["kind"]
    match settings:
        case StaircaseSettings():
            if carried is not None:
                start = min(max(carried.level, settings.minimum), settings.maximum)
                settings = dataclasses.replace(settings, start=start)
            return Staircase(settings)
        case QuestSettings():
            from apps.experiment.procedures.quest import QuestPlus

            return QuestPlus(settings, guess, carried)
        case ConstantSettings():
            values, longest_run = settings.levels, settings.longest_run
        case AdjustmentSettings():
            values, longest_run = settings.starts, settings.longest_run
        case EstimationSettings():
            values, longest_run = settings.levels, 1
        case _:
            return FixedLevels(kind, (settings.level,) * settings.trials)
    order = permuted_blocks(len(values), settings.repeats, seed, longest_run=longest_run)
    return FixedLevels(kind, tuple(values[number] for number in order))


class Staircase:
    """Up/down staircase (Levitt 1971) with weighted steps (Kaernbach 1991; Garcia-Perez 1998).

    A reversal is assigned to the trial whose answer reversed the direction, at the level of this trial. The size of a
    step depends on the number of previous reversals. At the lowest or highest level the track does not move, which is
    counted and reported. The answer may still cause a reversal.

    Parameters
    ----------
    settings : StaircaseSettings
        Initial level, bounds, rule, steps and termination.
    """

    def __init__(self, settings: StaircaseSettings) -> None:
        self.settings = settings
        self.trials = 0
        self.reversals: list[dict[str, Any]] = []
        self.clamped: list[int] = []
        self._position = self._to_scale(settings.start)
        self._ends = self._to_scale(settings.minimum), self._to_scale(settings.maximum)
        self._in_a_row = 0
        self._direction = 0

    @property
    def finished(self) -> bool:
        """Whether there were enough reversals and trials, or the maximum number of trials."""
        enough = len(self.reversals) >= self.settings.reversals and self.trials >= self.settings.trials
        return enough or self.trials >= self.settings.most_trials

    def level(self) -> float:
        """Return the level of the next trial."""
        settings = self.settings
        if settings.scale == "linear":
            return self._position
        # The limits are exact, because a level beyond a limit by a rounding error would be rejected.
        level = math.exp(self._position / _PER_E_FOLD[settings.scale])
        return min(max(level, settings.minimum), settings.maximum)

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add an answer at `level`, which is reported for reversals.

        Steps are relative to the requested level.
        """
        self.trials += 1
        self._in_a_row = self._in_a_row + 1 if correct else 0
        needed = 1 if self.settings.initial_rule and not self.reversals else self.settings.down
        if correct and self._in_a_row < needed:
            return
        self._in_a_row = 0
        direction = -1 if correct else 1
        if self._direction == -direction:
            self.reversals.append({"trial": self.trials, "level": level, "direction": "down" if correct else "up"})
        self._direction = direction
        up = self.settings.steps[min(len(self.reversals), len(self.settings.steps) - 1)]
        wanted = self._position + (up if direction > 0 else -up * self.settings.step_ratio)
        self._position = min(max(wanted, self._ends[0]), self._ends[1])
        if abs(self._position - wanted) > _ROUNDING * up:
            self.clamped.append(self.trials)

    def _to_scale(self, level: float) -> float:
        scale = self.settings.scale
        return level if scale == "linear" else math.log(level) * _PER_E_FOLD[scale]

    def report(self) -> dict[str, Any]:
        """Return reversals, estimate and target.

        `estimate` is null if too few reversals remain. The estimate is the geometric mean of the levels of the
        reversals after the first `dropped`. ``clamped`` lists the trials after which a step was limited.
        """
        used = [reversal["level"] for reversal in self.reversals[self.settings.dropped :] if reversal["level"] > 0.0]
        logs = [math.log(level) for level in used]
        mean = math.fsum(logs) / len(logs) if logs else math.nan
        spread = math.fsum((each - mean) ** 2 for each in logs)
        return {
            "kind": "staircase",
            "estimate": math.exp(mean) if logs else None,
            "log_sd": math.sqrt(spread / (len(logs) - 1)) if len(logs) > 1 else None,
            "target_percent": 100.0 * self.settings.target,
            "rule": f"{self.settings.down}-down/1-up",
            "step_ratio": self.settings.step_ratio,
            "reversals": list(self.reversals),
            "dropped": min(self.settings.dropped, len(self.reversals)),
            "clamped": list(self.clamped),
            "trials": self.trials,
            "finished": self.finished,
        }


class FixedLevels:
    """Levels in a predetermined order: constant stimuli, adjustment, magnitude estimation, or a single level.

    In an adjustment, a level is the initial value, and the recorded value is the one that was set.

    Parameters
    ----------
    kind : str
        ``constant``, ``adjustment``, ``estimation`` or ``series``.
    levels : tuple of float
        Level of each trial.
    """

    def __init__(self, kind: str, levels: tuple[float, ...]) -> None:
        self._kind, self._levels = kind, levels
        self._done: list[tuple[float, bool]] = []

    @property
    def finished(self) -> bool:
        """Whether all levels were presented."""
        return len(self._done) >= len(self._levels)

    def level(self) -> float:
        """Return the level of the next trial, or the last level after the end."""
        return self._levels[min(len(self._done), len(self._levels) - 1)]

    def add_outcome(self, level: float, correct: bool) -> None:
        """Add the level that was presented or set, and whether the answer was correct."""
        self._done.append((level, correct))

    def report(self) -> dict[str, Any]:
        """Return the results.

        For constant stimuli and series, these are the numbers of right answers and of all answers by level, in
        increasing order. Estimates of magnitudes are in the journal. The estimate of an adjustment is the mean of the
        values, which is the point of subjective equality. If the errors are normal, a value one standard deviation
        (``sd``) from the mean is discriminated in 84 % of trials.
        """
        levels = [level for level, _ in self._done]
        found: dict[str, Any] = {"kind": self._kind, "estimate": None, "target_percent": None}
        found |= {"trials": len(levels), "finished": self.finished}
        if self._kind == "estimation":
            return found | {"levels": levels}
        if self._kind == "adjustment":
            mean = math.fsum(levels) / len(levels) if levels else None
            sd = None
            if mean is not None and len(levels) > 1:
                sd = math.sqrt(math.fsum((value - mean) ** 2 for value in levels) / (len(levels) - 1))
            return found | {"estimate": mean, "sd": sd, "sd_percent": 84.13, "settings": levels}
        answers = {at: [correct for level, correct in self._done if level == at] for at in sorted(set(levels))}
        found["counts"] = [{"level": at, "correct": sum(each), "total": len(each)} for at, each in answers.items()]
        if self._kind == "series":
            correct = sum(right for _, right in self._done)
            found |= {"correct": correct, "percent_correct": 100.0 * correct / len(levels) if levels else None}
        return found


class Tracks:
    """Interleaved tracks: in every round, each unfinished track has one trial, in random order.

    The tracks therefore proceed together, and only the last trial of a round is predictable. The order of a round
    depends on its number only, not on answers.

    Parameters
    ----------
    procedures : sequence of Procedure
        The tracks, at least one.
    seed : SeedSequence
        Parent seed. Round k is drawn with its k-th child.

    Examples
    --------
    >>> from apps.experiment import Tracks, make_procedure, trial_seed
    >>> seed = trial_seed(4, "P01", 1, 1, 0)
    >>> series = [make_procedure({"kind": "series", "level": x, "trials": 2}, guess=0.5, seed=seed) for x in (0.5, 1.0)]
    >>> tracks, levels = Tracks(series, seed), []
    >>> while not tracks.finished:
    ...     track, level = tracks.next()
    ...     tracks.add_outcome(track, level, correct=True)
    ...     levels.append(level)
    >>> sorted(levels)
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(self, procedures: Sequence[Procedure], seed: SeedSequence) -> None:
        self.procedures = tuple(procedures)
        self._seed = seed
        self._round = 0
        self._left = self._drawn()

    @property
    def finished(self) -> bool:
        """Whether all tracks are finished."""
        return all(procedure.finished for procedure in self.procedures)

    def next(self) -> tuple[int, float]:
        """Return the track of the next trial, from 0, and its level, unchanged until `add_outcome`.

        Invalid once finished.
        """
        track = self._left[0]
        return track, self.procedures[track].level()

    def add_outcome(self, track: int, level: float, correct: bool) -> None:
        """Add the outcome of a trial of `track`; see `Procedure.add_outcome`."""
        self.procedures[track].add_outcome(level, correct)
        self._left.remove(track)
        if not self._left and not self.finished:
            self._round += 1
            self._left = self._drawn()

    def _drawn(self) -> list[int]:
        """Return the order of the current round, without finished tracks."""
        order = child(self._seed, self._round).permutation(len(self.procedures))
        return [int(number) for number in order if not self.procedures[number].finished]


# --- seeds and orders -------------------------------------------------------------------------------------------------

_TRIES = 50
"""Number of random permutations before a block without long runs is constructed."""


def trial_seed(master: int, participant: int | str, session: int, block: int, trial: int) -> SeedSequence:
    """Return the seed of a trial, which depends only on the arguments.

    Parameters
    ----------
    master : int
        Seed of the experiment.
    participant : int or str
        Number or code. A code is represented by the first 32 bits of its SHA-256.
    session, block, trial : int
        Numbers. Values of a whole block or session use 0 for the remaining ones.

    Raises
    ------
    ConfigurationError
        If a number is negative or has more than 32 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from apps.experiment import trial_seed
    >>> draws = [np.random.default_rng(trial_seed(4, "P01", 1, 1, trial)).integers(1, 3) for trial in (1, 2, 1)]
    >>> bool(draws[0] == draws[2])
    True
    """
    if isinstance(participant, str):
        participant = int.from_bytes(hashlib.sha256(participant.encode()).digest()[:4], "little")
    key = participant, session, block, trial
    if master < 0 or not all(0 <= number < 2**32 for number in key):
        raise ConfigurationError(
            f"seed {master} for participant, session, block, trial {key}: must be numbers from 0 to 2^32 - 1."
        )
    return SeedSequence(master, spawn_key=key)


def person_seed(master: int, participant: int | str) -> SeedSequence:
    """Return the seed of a simulated participant's properties, the same in all sessions; see `trial_seed`."""
    return trial_seed(master, participant, 0, 0, 1)


def child(seed: SeedSequence, *key: int) -> np.random.Generator:
    """Return the generator with the index `key` below `seed`.

    `seed` is not modified.
    """
    return np.random.default_rng(SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key)))


def williams(count: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a Williams design: orders of `count` conditions, balanced for carry-over.

    An even number of conditions gives `count` rows, an odd number twice as many. Over all rows, each condition occurs
    equally often in each position and follows each other condition equally often (Williams 1949).
    """
    if count < 1:
        raise ConfigurationError(f"a Williams square of {count} conditions: must be at least 1.")
    first = [0]
    for k in range(1, count):
        first.append((k + 1) // 2 if k % 2 else count - k // 2)
    rows = [tuple((each + shift) % count for each in first) for shift in range(count)]
    if count % 2 and count > 1:
        rows += [row[::-1] for row in rows]
    return tuple(rows)


def williams_order(count: int, slot: int) -> tuple[int, ...]:
    """Return the order of conditions for the participant in `slot` (0, 1, ...).

    Full sets of slots are balanced.

    Examples
    --------
    >>> from apps.experiment import williams_order
    >>> [williams_order(3, slot) for slot in range(2)]
    [(0, 1, 2), (1, 2, 0)]
    """
    rows = williams(count)
    return rows[slot % len(rows)]


def permuted_blocks(items: int, blocks: int, seed: SeedSequence, *, longest_run: int | None = None) -> tuple[int, ...]:
    """Return an order in which every block contains each of `items` numbers once.

    Parameters
    ----------
    items, blocks : int
        Numbers 0 to items - 1, and number of blocks.
    seed : SeedSequence
        Parent seed. Block k is drawn with its k-th child.
    longest_run : int, optional
        Longest permitted run of a number, also across blocks.

    Raises
    ------
    ConfigurationError
        If an argument is out of range, or a single item would be repeated too often.

    Examples
    --------
    >>> from apps.experiment import permuted_blocks, trial_seed
    >>> order = permuted_blocks(3, 2, trial_seed(4, "P01", 1, 1, 0))
    >>> sorted(order[:3]), sorted(order[3:])
    ([0, 1, 2], [0, 1, 2])
    """
    if items < 1 or blocks < 0 or (longest_run is not None and longest_run < 1):
        raise ConfigurationError(f"{blocks} permuted blocks of {items} items: must be at least 1 each.")
    if items == 1 and longest_run is not None and blocks > longest_run:
        raise ConfigurationError(f"one item {blocks} times: cannot be kept from more than {longest_run} in a row.")
    order: list[int] = []
    for number in range(blocks):
        rng, tail = child(seed, number), order[-longest_run:] if longest_run else []
        for _ in range(_TRIES):
            block = [int(item) for item in rng.permutation(items)]
            if longest_run is None or longest_repeat([*tail, *block]) <= longest_run:
                break
        else:  # begin with another number than the last block ends with
            block = [int(item) for item in rng.permutation(items)]
            if longest_repeat([*tail, block[0]]) > (longest_run or 1):
                block[0], block[1] = block[1], block[0]
        order += block
    return tuple(order)


def longest_repeat(order: Sequence[int]) -> int:
    """Return the length of the longest run of a number, or 0 for an empty order."""
    longest = run = 0
    for place, number in enumerate(order):
        run = run + 1 if place and number == order[place - 1] else 1
        longest = max(longest, run)
    return longest


def catch_kinds(null: float, easy: float) -> tuple[str, ...]:
    """Return the kinds of catch trials in one permuted block, for the shares of both kinds.

    The rarer kind occurs once, the other one a rounded number of times. The share of a kind in a session is therefore
    its fraction of the block times the sum of the shares.
    """
    least = min((share for share in (null, easy) if share), default=1.0)
    return ("null",) * round(null / least) + ("easy",) * round(easy / least)


def catch_positions(
    trials: int, share: float, seed: SeedSequence, *, kinds: Sequence[str] = ("null", "easy"), lead: int = 3
) -> dict[int, str]:
    """Return the catch trials among `trials` as {trial from 0: kind}.

    The trials after the first `lead` are divided into segments of 1/share trials, each with one catch trial at a random
    position. The kinds are in permuted blocks. More trials do not change the positions in the earlier segments, so that
    adaptive procedures of unknown length can use their maximum.

    Parameters
    ----------
    trials : int
        Number of all trials, including catch trials.
    share : float
        Fraction of catch trials, from 0 to 0.5.
    seed : SeedSequence
        Seed of the block.
    kinds : sequence of str
        Kinds of catch trials.
    lead : int
        Number of initial trials without catch trials.
    """
    if not 0.0 <= share <= 0.5:
        raise ConfigurationError(f"a share of catch trials of {share:g}: must be from 0 to 0.5; 0.05 to 0.1 is usual.")
    if share == 0.0 or not kinds:
        return {}
    found: dict[int, str] = {}
    number = 0
    while lead + round(number / share) < trials:
        start, end = lead + round(number / share), lead + round((number + 1) / share)
        place = int(child(seed, number, 0).integers(start, end))
        kind = child(seed, number // len(kinds), 1).permutation(len(kinds))[number % len(kinds)]
        if place < trials:
            found[place] = kinds[int(kind)]
        number += 1
    return found
