"""Settings of a power analysis: the table ``power`` of an experiment file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError
from haptics.settings import bounded, check, choice, documented, string, unrestricted

_NUMBERS = "a list of whole numbers from 2 to 1000, in rising order"


@documented
@dataclass(frozen=True)
class PowerSettings:
    """Table ``power``: question of the study, and number of simulated observers."""

    question: str = choice(
        "difference", ("difference", "precision"), doc="whether two conditions differ, or how well one is known"
    )
    first: str = string(
        "", allowed="a condition", doc="the condition, or the first of the two; the file's first if empty"
    )
    second: str = string("", allowed="a condition", doc="the second of the two; the file's second if empty")
    ratio: float = bounded(
        1.3, above=0.0, maximum=10.0, doc="Weber fraction of the second divided by that of the first, in truth"
    )
    ratio_spread: float = bounded(
        0.1, minimum=0.0, maximum=2.0, doc="standard deviation of that ratio between people, as a share"
    )
    precision: float = bounded(
        0.15, above=0.0, maximum=2.0, doc="half of the 95 % interval of the group's mean that is wanted, as a share"
    )
    proportion: float = bounded(
        0.75, above=0.5, maximum=0.99, doc="proportion correct at which thresholds are read off"
    )
    shape: str = choice(
        "weibull", ("weibull", "phi", "logistic", "dprime"), doc="psychometric function that is fitted to the logarithm"
    )
    alpha: float = bounded(0.05, above=0.0, maximum=0.5, doc="significance level of the two-sided test")
    wanted: float = bounded(0.8, above=0.0, maximum=0.999, doc="power that is wanted")
    participants: Any = unrestricted(
        (4, 6, 8, 10, 12, 16, 20, 24, 32), _NUMBERS, doc="numbers of participants that are tried"
    )
    people: int = bounded(2000, minimum=20, maximum=1_000_000, doc="how many people are simulated")
    seed: int = bounded(1, minimum=0, maximum=2**62, doc="seed of the simulation")

    def __post_init__(self) -> None:
        check(self, "power")
        given = self.participants
        good = isinstance(given, list | tuple) and bool(given)
        if (
            not good
            or not all(type(each) is int and 2 <= each <= 1000 for each in given)
            or sorted(given) != list(given)
        ):
            raise ConfigurationError(f"power.participants = {given!r}: must be {_NUMBERS}.")
        object.__setattr__(self, "participants", tuple(given))  # frozen: lists come from files
