"""Measurement of the specified (file), delivered (commands) and felt (hand) stimuli."""

from apps.experiment.stimulus.measuring import measure

__all__ = ["measure"]
