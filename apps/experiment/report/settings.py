"""Table ``analysis`` of an experiment file: settings of the fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from haptics.errors import ConfigurationError
from haptics.settings import bounded, build, check, choice, documented, unrestricted

SHAPES = ("dprime", "weibull", "phi", "logistic")
STIMULI = ("asked", "delivered", "felt")

_TEXTS = "a text or a list of texts"

USUAL_PERCENT = 75.0
"""Midpoint between guessing and certainty in two intervals [%]."""


@documented
@dataclass(frozen=True)
class AnalysisSettings:
    """Table ``analysis``: fitted function and percentages of difference thresholds."""

    shape: str = choice("dprime", SHAPES, doc="psychometric function, of the logarithm of the level")
    percent: Any = unrestricted(
        (),
        "a list of percentages",
        doc="correct answers at which differences are read off; 75, or what staircases aim at",
    )
    stimulus: str = choice("asked", STIMULI, doc="which levels are fitted")
    probability: float = bounded(0.95, minimum=0.5, maximum=0.999, doc="probability of the intervals")
    hypotheses: Any = unrestricted((), _TEXTS, doc="for the preregistration: what is expected")
    exclusions: Any = unrestricted(
        (), _TEXTS, doc="for the preregistration: who does not count, besides the rules of the file"
    )
    plan: Any = unrestricted((), _TEXTS, doc="for the preregistration: what is computed and tested")

    def __post_init__(self) -> None:
        check(self, "analysis")
        given = self.percent if isinstance(self.percent, list | tuple) else [self.percent]
        if not all(isinstance(one, int | float) and not isinstance(one, bool) and 50.0 < one < 100.0 for one in given):
            raise ConfigurationError(
                f"analysis.percent = {self.percent!r}: must be percentages between 50 and 100, such as [75, 84]."
            )
        for name in ("hypotheses", "exclusions", "plan"):
            value = getattr(self, name)
            if not all(isinstance(one, str) for one in (value if isinstance(value, list | tuple) else [value])):
                raise ConfigurationError(f"analysis.{name} = {str(value)[:40]!r}: must be {_TEXTS}.")
        object.__setattr__(self, "percent", tuple(float(one) for one in given) or (USUAL_PERCENT,))

    @classmethod
    def of(cls, table: Mapping[str, Any], percent: Sequence[float] = ()) -> Self:
        """Return the settings in a table ``analysis``, ignoring entries of earlier versions.

        Parameters
        ----------
        table : mapping
            Table ``analysis``.
        percent : sequence of float
            Percentages that replace those in the table, if any.

        Raises
        ------
        ConfigurationError
            If a value is invalid.
        """
        own = {one.name: table[one.name] for one in fields(cls) if one.name in table}
        return build(cls, own | ({"percent": list(percent)} if percent else {}), "analysis")
