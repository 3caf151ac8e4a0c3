"""Random order that can be repeated: seeds by trial, Williams squares, permuted blocks, places of catch trials.

Every draw has a seed of its own, made of the number of what is drawn. What trial 7 gets does not depend on whether
trials 1 to 6 were drawn, in this process or in one that was killed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence

from haptics.errors import ConfigurationError

_TRIES = 50
"""Permutations that are drawn before one without long runs is made by hand."""


def trial_seed(master: int, participant: int | str, session: int, block: int, trial: int) -> SeedSequence:
    """Return the seed of a trial, by its address and nothing else.

    Parameters
    ----------
    master : int
        Seed of the experiment.
    participant : int or str
        Number, or code; of a code the first 32 bits of its SHA-256 are taken.
    session, block, trial : int
        Numbers; what belongs to a whole block or session takes 0 for the rest.

    Raises
    ------
    ConfigurationError
        If a number is negative or has more than 32 bits.
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
    """Return the seed of what a simulated participant is like, the same in all sessions; see `trial_seed`."""
    return trial_seed(master, participant, 0, 0, 1)


def child(seed: SeedSequence, *key: int) -> np.random.Generator:
    """Return the generator with the number `key` below `seed`; `seed` itself stays as it is."""
    return np.random.default_rng(SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key)))


def williams(count: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a Williams design: orders of `count` conditions, balanced for what comes before.

    With an even number of conditions there are `count` rows, with an odd one twice as many. Over all rows each
    condition is as often in each place, and each follows each other one equally often (Williams 1949).
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
    """Return the order of conditions for the participant in `slot` (0, 1, ...); every full set of slots is balanced."""
    rows = williams(count)
    return rows[slot % len(rows)]


def permuted_blocks(
    items: int, blocks: int, seed: SeedSequence, *, each: int = 1, longest_run: int | None = None
) -> tuple[int, ...]:
    """Return an order in which every block has each of `items` numbers `each` times.

    Parameters
    ----------
    items, blocks : int
        Numbers 0 to items - 1, and how many blocks of them.
    seed : SeedSequence
        Block k is drawn with the seed of its own number below it.
    each : int
        How often a block has each number.
    longest_run : int, optional
        The same number is at most this often in a row, also from one block to the next.

    Raises
    ------
    ConfigurationError
        If there is one item only, and it may not be repeated.
    """
    if items < 1 or blocks < 0 or each < 1 or (longest_run is not None and longest_run < 1):
        raise ConfigurationError(f"{blocks} permuted blocks of {each} times {items} items: must be at least 1 each.")
    if items == 1 and longest_run is not None and blocks * each > longest_run:
        raise ConfigurationError(
            f"one item {blocks * each} times: cannot be kept from more than {longest_run} in a row."
        )
    order: list[int] = []
    for number in range(blocks):
        order += _block(items, each, child(seed, number), order, longest_run)
    return tuple(order)


def _block(
    items: int, each: int, rng: np.random.Generator, before: Sequence[int], longest_run: int | None
) -> list[int]:
    """Return one permuted block that may follow `before`."""
    tail = list(before[-longest_run:]) if longest_run else []
    for _ in range(_TRIES):
        block = [int(number) for number in rng.permutation(np.repeat(np.arange(items), each))]
        if longest_run is None or longest_repeat([*tail, *block]) <= longest_run:
            return block
    return _spread(items, each, rng, tail, longest_run or 1)


def _spread(items: int, each: int, rng: np.random.Generator, tail: list[int], longest_run: int) -> list[int]:
    """Return a block without long runs, made by always taking one of those that are left most often."""
    left = dict.fromkeys((int(number) for number in rng.permutation(items)), each)
    order = list(tail)
    for _ in range(items * each):
        end = order[-longest_run:]
        full = len(end) == longest_run and len(set(end)) == 1
        allowed = [number for number, count in left.items() if count and not (full and number == end[0])]
        chosen = max(allowed, key=lambda number: left[number])
        left[chosen] -= 1
        order.append(chosen)
    return order[len(tail) :]


def longest_repeat(order: Sequence[int]) -> int:
    """Return how often a number occurs in a row, at most; 0 for an empty order."""
    longest = run = 0
    for place, number in enumerate(order):
        run = run + 1 if place and number == order[place - 1] else 1
        longest = max(longest, run)
    return longest


def catch_positions(
    trials: int, share: float, seed: SeedSequence, *, kinds: Sequence[str] = ("null", "easy"), lead: int = 3
) -> dict[int, str]:
    """Return which of `trials` are catch trials, {trial from 0: kind}.

    The trials after the first `lead` are cut into stretches of 1/share; each has one catch trial, in a place that is
    drawn. The kinds come in permuted blocks. More trials leave those before as they are, so that an adaptive procedure,
    whose length is not known, can ask for the most that it may have.

    Parameters
    ----------
    trials : int
        All trials, catch trials too.
    share : float
        Catch trials among all, from 0 to 0.5.
    seed : SeedSequence
        Of the block.
    kinds : sequence of str
        What kinds there are.
    lead : int
        Trials at the start without one.
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
