"""Excitation of a device for identification: recorded motions within the safety envelope.

A *procedure* is a generator: it yields a motion, receives the rows that were recorded during it, and decides on the
next motion. `drive` runs a procedure on a `Mover`: in real time in a servo process, or, on a virtual device, as fast as
possible in this process. At every end the device has its safe output and the recording is kept.
"""

from calibration.motions.procedure import Mover, Present, Procedure, drive, rows_of, source_of

__all__ = ["Mover", "Present", "Procedure", "drive", "rows_of", "source_of"]
