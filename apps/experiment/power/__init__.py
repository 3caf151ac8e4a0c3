"""Planning: how many participants a study needs, from simulated people who do the same procedures.

- `apps.experiment.power.settings`: the table ``power``.
- `apps.experiment.power.people`: simulated people, their answers and fits; `pool`: many of them, on all processors.
- `apps.experiment.power.planning`: from them to power and width against the number of participants.
- `apps.experiment.power.study`: what the experiment's file says of all that, and how long it takes.
- `apps.experiment.power.command`: ``haptics experiment power``.
"""
