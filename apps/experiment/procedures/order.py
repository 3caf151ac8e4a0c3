"""Reproducible randomisation: trial seeds, Williams squares, permuted blocks, catch trial positions.

Every random value has a separate seed, derived from its index. The values of trial 7 do not depend on whether the
values of trials 1 to 6 were drawn before, or in the same process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence

from haptics.errors import ConfigurationError

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
