"""Random numbers for kernels: the published sequence, and the statistics."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from devices.virtual.noise import NOISE_FIELDS, normal_pair, random_bits, uniform
from haptics.jit import kernel

COUNT = 20_000


@kernel
def _fill_bits(record: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = random_bits(record[0])


@kernel
def _fill_uniform(record: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = uniform(record[0])


@kernel
def _fill_normal(record: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k, 0], out[k, 1] = normal_pair(record[0])


def generator(seed):
    record = np.zeros(1, np.dtype(NOISE_FIELDS))
    record["noise_state"] = seed
    return record


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ],
)
def test_bits_are_those_of_splitmix64(seed, expected):
    out = np.zeros(3, np.uint64)
    _fill_bits(generator(seed), out)
    assert out.tolist() == expected


def test_uniform_numbers_are_uniform():
    out = np.zeros(COUNT)
    _fill_uniform(generator(5), out)
    assert out.min() >= 0.0
    assert out.max() < 1.0
    assert stats.kstest(out, "uniform").pvalue > 1e-3


def test_normal_numbers_are_normal_and_independent():
    out = np.zeros((COUNT, 2))
    _fill_normal(generator(6), out)
    for column in out.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(column[1:], column[:-1])[0, 1]) < 5.0 / np.sqrt(COUNT)
    assert abs(np.corrcoef(out.T)[0, 1]) < 5.0 / np.sqrt(COUNT)
    assert abs(np.corrcoef((out**2).T)[0, 1]) < 5.0 / np.sqrt(COUNT)


def test_two_generators_do_not_disturb_each_other():
    alone, first, other = np.zeros((50, 2)), np.zeros((50, 2)), np.zeros((50, 2))
    _fill_normal(generator(1), alone)
    record, another = generator(1), generator(2)
    for k in range(50):
        _fill_normal(record, first[k : k + 1])
        _fill_normal(another, other[k : k + 1])
    np.testing.assert_array_equal(first, alone)
    assert (first != other).all()
