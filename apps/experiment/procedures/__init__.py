"""Psychophysical procedures, which select the level of the next trial from the previous answers.

- `apps.experiment.procedures.procedure`: the interface.
- `apps.experiment.procedures.settings`: the settings of every kind; `make` constructs a procedure from a table.
- `apps.experiment.procedures.staircase`: up/down staircases.
- `apps.experiment.procedures.quest`, `quest_kernels`: QUEST+.
- `apps.experiment.procedures.fixed`: constant stimuli, adjustment, magnitude estimation, series at one level.
- `apps.experiment.procedures.tracks`: interleaved tracks.
- `apps.experiment.procedures.order`: seeds, Williams squares, permuted blocks, positions of catch trials.
"""

from apps.experiment.procedures.make import KINDS, make_procedure, procedure_settings
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
from apps.experiment.procedures.procedure import Procedure
from apps.experiment.procedures.settings import possible_levels
from apps.experiment.procedures.tracks import Tracks

__all__ = [
    "KINDS",
    "Procedure",
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
