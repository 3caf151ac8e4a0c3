from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from apps.experiment.procedures.order import (
    catch_positions,
    child,
    longest_repeat,
    permuted_blocks,
    trial_seed,
    williams,
    williams_order,
)
from haptics.errors import ConfigurationError

SEED = trial_seed(11, "P01", 1, 2, 0)


def test_a_trials_draw_depends_on_its_address_only() -> None:
    drawn = [float(np.random.default_rng(trial_seed(5, "P01", 1, 1, trial)).random()) for trial in range(8)]
    assert float(np.random.default_rng(trial_seed(5, "P01", 1, 1, 6)).random()) == drawn[6]  # without those before
    assert len(set(drawn)) == 8


def test_every_part_of_the_address_counts() -> None:
    addresses = [(1, 2, 3, 4, 5), (2, 2, 3, 4, 5), (1, 3, 3, 4, 5), (1, 2, 4, 4, 5), (1, 2, 3, 5, 5), (1, 2, 3, 4, 6)]
    states = [tuple(trial_seed(*address).generate_state(4)) for address in addresses]
    states += [tuple(trial_seed(1, code, 3, 4, 5).generate_state(4)) for code in ("2", "P02", "p02")]
    assert len(set(states)) == len(states)


def test_seeds_stay_what_they_are() -> None:
    """A journal of today must be resumed by the program of tomorrow."""
    assert trial_seed(20, "P01", 1, 2, 3).generate_state(2).tolist() == [325828995, 436289720]


def test_a_child_takes_nothing_from_its_seed() -> None:
    first = child(SEED, 3).random(4)
    child(SEED, 2).random(4)
    assert (child(SEED, 3).random(4) == first).all()


def test_a_seed_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="numbers from 0"):
        trial_seed(1, 2, -1, 0, 0)


@pytest.mark.parametrize("count", range(1, 10))
def test_williams_squares_balance_places_and_what_comes_before(count: int) -> None:
    rows = williams(count)
    assert len(rows) == (count if count % 2 == 0 or count == 1 else 2 * count)
    places = Counter((place, each) for row in rows for place, each in enumerate(row))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert set(places.values()) == {len(rows) // count} and len(places) == count**2
    assert len(follows) == count * (count - 1) and len(set(follows.values())) <= 1
    assert all(first != second for first, second in follows)
    assert williams_order(count, len(rows)) == rows[0]


@pytest.mark.parametrize(
    ("items", "each", "longest"), [(2, 1, 1), (2, 5, 1), (3, 1, 1), (7, 1, 2), (4, 3, 1), (2, 20, 2)]
)
def test_permuted_blocks_hold_each_item_and_no_long_run(items: int, each: int, longest: int) -> None:
    order = permuted_blocks(items, 12, SEED, each=each, longest_run=longest)
    size = items * each
    blocks = [order[start : start + size] for start in range(0, len(order), size)]
    assert len(blocks) == 12 and all(set(Counter(block).values()) == {each} for block in blocks)
    assert set(order) == set(range(items))
    assert longest_repeat(order) <= longest


def test_blocks_are_drawn_one_by_one() -> None:
    assert permuted_blocks(5, 8, SEED)[:20] == permuted_blocks(5, 4, SEED)
    assert permuted_blocks(5, 8, SEED) != permuted_blocks(5, 8, trial_seed(12, "P01", 1, 2, 0))


def test_an_order_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="one item 4 times"):
        permuted_blocks(1, 4, SEED, longest_run=2)
    with pytest.raises(ConfigurationError, match="at least 1"):
        permuted_blocks(0, 4, SEED)


def test_catch_trials_are_spread_and_of_both_kinds() -> None:
    found = catch_positions(203, 0.1, SEED)
    assert len(found) == 20 and min(found) >= 3
    assert sorted((place - 3) // 10 for place in found) == list(range(20))
    assert Counter(found.values()) == {"null": 10, "easy": 10}
    assert len({(place - 3) % 10 for place in found}) > 4  # the place in a stretch is drawn


def test_more_trials_leave_earlier_catch_trials_as_they_are() -> None:
    long = catch_positions(300, 0.07, SEED)
    for trials in (3, 20, 77, 150):
        assert catch_positions(trials, 0.07, SEED) == {place: kind for place, kind in long.items() if place < trials}


def test_no_catch_trials_or_too_many() -> None:
    assert catch_positions(100, 0.0, SEED) == {}
    with pytest.raises(ConfigurationError, match=r"from 0 to 0\.5"):
        catch_positions(100, 0.6, SEED)
