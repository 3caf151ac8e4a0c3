"""Construction of procedures from the table of an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.random import SeedSequence

from apps.experiment.procedures.fixed import Adjustment, ConstantStimuli, Estimation, Series
from apps.experiment.procedures.procedure import Procedure
from apps.experiment.procedures.settings import (
    AdjustmentSettings,
    ConstantSettings,
    EstimationSettings,
    ProcedureSettings,
    QuestSettings,
    SeriesSettings,
    StaircaseSettings,
)
from apps.experiment.procedures.staircase import Staircase
from haptics.errors import ConfigurationError
from haptics.settings import build, unknown_name

KINDS: dict[str, type[ProcedureSettings]] = {
    "staircase": StaircaseSettings,
    "quest+": QuestSettings,
    "constant": ConstantSettings,
    "adjustment": AdjustmentSettings,
    "estimation": EstimationSettings,
    "series": SeriesSettings,
}
"""Settings class of each ``kind`` of procedure."""


def procedure_settings(table: Mapping[str, Any], where: str = "procedure") -> ProcedureSettings:
    """Return the procedure settings in a table with ``kind`` and the settings of that kind.

    Raises
    ------
    ConfigurationError
        If the kind or a setting is unknown, or a value is out of bounds.
    """
    if "kind" not in table:
        raise ConfigurationError(f"{where}.kind is missing: must be one of {', '.join(KINDS)}.")
    kind = table["kind"]
    if kind not in KINDS:
        raise unknown_name("kind of procedure", str(kind), KINDS)
    return build(KINDS[kind], {name: value for name, value in table.items() if name != "kind"}, where)


def make_procedure(table: Mapping[str, Any], *, guess: float, seed: SeedSequence) -> Procedure:
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

    Raises
    ------
    ConfigurationError
        If the table is invalid.
    """
    settings = procedure_settings(table)
    match settings:
        case StaircaseSettings():
            return Staircase(settings)
        case QuestSettings():
            from apps.experiment.procedures.quest import QuestPlus

            return QuestPlus(settings, guess)
        case ConstantSettings():
            return ConstantStimuli(settings, seed)
        case AdjustmentSettings():
            return Adjustment(settings, seed)
        case EstimationSettings():
            return Estimation(settings, seed)
    return Series(settings)
