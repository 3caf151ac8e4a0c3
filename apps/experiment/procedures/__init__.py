"""Psychophysical procedures, which select the level of the next trial from the previous answers.

- `apps.experiment.procedures.settings`: the settings of every kind.
- `apps.experiment.procedures.methods`: the interface, staircases, predetermined levels, interleaved tracks.
- `apps.experiment.procedures.quest`: QUEST+.
- `apps.experiment.procedures.order`: seeds, Williams squares, permuted blocks, positions of catch trials.
"""

from apps.experiment.procedures.methods import Procedure, Tracks, make_procedure
from apps.experiment.procedures.order import (
    catch_positions,
    child,
    longest_repeat,
    permuted_blocks,
    person_seed,
    trial_seed,
    williams,
    williams_order,
)
from apps.experiment.procedures.settings import KINDS, StaircaseSettings, possible_levels, procedure_settings

__all__ = [
    "KINDS",
    "Procedure",
    "StaircaseSettings",
    "Tracks",
    "catch_positions",
    "child",
    "longest_repeat",
    "make_procedure",
    "permuted_blocks",
    "person_seed",
    "possible_levels",
    "procedure_settings",
    "trial_seed",
    "williams",
    "williams_order",
]
