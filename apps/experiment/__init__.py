"""Psychophysical experiments: the command ``haptics experiment``, and a library for other trial logic.

A program that runs its own trials uses the procedures, the journal and the exports of the command: `TrialLog`
writes trials that survive a crash and continue after it, `make_procedure` chooses levels, `trial_rows` is the table of
trials with stimuli as asked, delivered and felt, and `export_sessions` writes it for other programs.
"""

from haptics.lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)
