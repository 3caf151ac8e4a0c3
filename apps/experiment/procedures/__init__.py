"""Procedures: which level the next trial has. Pure: no clock, no files, no device; the same answers, the same levels.

- `apps.experiment.procedures.procedure`: the protocol.
"""

from apps.experiment.procedures.procedure import Procedure

__all__ = ["Procedure"]
