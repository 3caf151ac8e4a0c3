"""Psychophysical procedures, which select the level of the next trial from the previous answers.

- `apps.experiment.procedures.settings`: the settings of every kind.
- `apps.experiment.procedures.methods`: staircases, predetermined levels, interleaved tracks; seeds, Williams squares,
  permuted blocks, positions of catch trials.
- `apps.experiment.procedures.quest`: QUEST+.
"""
