"""Power analysis: required number of participants, estimated with simulated observers.

- `apps.experiment.power.settings`: the table ``power``.
- `apps.experiment.power.people`: simulated observers, their answers and fits; `pool`: parallel execution.
- `apps.experiment.power.planning`: power and interval width as functions of the number of participants.
- `apps.experiment.power.study`: the study of an experiment file, and the duration of its sessions.
- `apps.experiment.power.command`: ``haptics experiment power``.
"""
