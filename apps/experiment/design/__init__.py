"""File of an experiment: reading, defaults, and validation against the device.

Every error message contains the line and the key.
"""

from apps.experiment.design.checks import finest_step, keys_of, levels_of
from apps.experiment.design.design import Design, design_of, read_design
from apps.experiment.design.lines import key_lines
from apps.experiment.design.settings import ConditionSettings
from apps.experiment.design.source import Source

__all__ = [
    "ConditionSettings",
    "Design",
    "Source",
    "design_of",
    "finest_step",
    "key_lines",
    "keys_of",
    "levels_of",
    "read_design",
]
