"""Power analysis: required number of participants, estimated with simulated observers.

- `apps.experiment.power.simulation`: simulated observers, their answers and fits, in parallel.
- `apps.experiment.power.study`: the study of an experiment file, power and interval width as functions of the number of
  participants, and the duration of the sessions.
"""
