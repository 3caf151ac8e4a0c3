"""How far predictions are off: intervals that hold the error of another recording, and pairs of errors."""

import numpy as np
import pytest

from calibration.fitting.prediction_error import BLOCKS, PARTS, block_means, elsewhere, estimate, paired


def correlated(seed: int, samples: int = 2000) -> np.ndarray:
    """Return errors whose size changes slowly: a few times in a recording."""
    random = np.random.default_rng(seed)
    size = np.exp(0.7 * np.interp(np.arange(samples), np.linspace(0, samples, 9), random.standard_normal(9)))
    return size * random.standard_normal(samples)


def both(seed: int) -> tuple[float, tuple[float, float], tuple[float, float]]:
    errors, ones = correlated(seed) ** 2, np.ones(2000)
    wide = elsewhere(
        float(np.sqrt(errors.mean())), 1.0, block_means(errors, PARTS), block_means(ones, PARTS), recordings=1
    )
    narrow = estimate(block_means(errors, BLOCKS), block_means(ones, BLOCKS))
    return wide.value, (wide.low, wide.high), (narrow.low, narrow.high)


def test_the_interval_holds_the_error_of_another_recording() -> None:
    """Blocks taken for independent, and the other recording for endless, miss it in half of the cases."""
    seen = [both(seed) for seed in range(200)]
    others = [one[0] for one in seen[1:]] + [seen[0][0]]
    wide = np.mean([one[1][0] < other < one[1][1] for one, other in zip(seen, others, strict=True)])
    narrow = np.mean([one[2][0] < other < one[2][1] for one, other in zip(seen, others, strict=True)])
    assert 0.9 <= wide <= 0.99
    assert narrow < 0.75


def test_more_recordings_make_the_interval_narrower_but_not_a_point() -> None:
    parts, ones = block_means(correlated(1) ** 2, PARTS), np.ones(PARTS)
    one = elsewhere(1.0, 1.0, parts, ones, 1)
    four = elsewhere(1.0, 1.0, np.tile(parts, 4), np.ones(4 * PARTS), 4)
    assert 1.0 < four.high < one.high
    assert one.low * one.high == pytest.approx(1.0)


def test_no_error_has_no_interval() -> None:
    assert elsewhere(0.0, 1.0, np.zeros(PARTS), np.ones(PARTS), 1).high == 0.0


def test_pairs_of_errors_are_compared_on_the_same_blocks() -> None:
    """Whatever the blocks have in common cancels."""
    first = block_means(correlated(2) ** 2, BLOCKS)
    assert paired(0.25 * first, first) == pytest.approx((0.5, 0.5, 0.5))
    value, low, high = paired(first * np.linspace(0.5, 1.5, BLOCKS), first)
    assert low < value < high
