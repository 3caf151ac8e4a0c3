"""The stimulus as it was: asked (the file), delivered (the commands), felt (what reached the hand); never mixed."""

from apps.experiment.stimulus.measuring import measure

__all__ = ["measure"]
