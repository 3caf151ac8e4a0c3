"""Selection of test parameters."""

from typing import TypeVar

T = TypeVar("T")


def sample(cases, number):
    """Return `number` evenly spaced cases with the first and the last one, or all if there are fewer."""
    every = list(cases)
    if len(every) <= number:
        return every
    return [every[k * (len(every) - 1) // max(number - 1, 1)] for k in range(number)]
