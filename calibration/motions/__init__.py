"""Excitation of a device for identification: motions one after the other, behind the envelope, all recorded.

A *procedure* is a generator: it gives a motion, gets the rows that were recorded while that was in force, and decides
what comes next. `drive` runs one on a `Mover`: by the wall's clock in a servo process, or, on a virtual device, as fast
as the machine can in this one. However it ends, the device has its safe output and what was recorded is kept.
"""

from calibration.motions.course import Procedure
from calibration.motions.driving import drive
from calibration.motions.mover import Mover
from calibration.motions.present import Present
from calibration.motions.reading import rows_of, source_of

__all__ = ["Mover", "Present", "Procedure", "drive", "rows_of", "source_of"]
