"""Fault injection: faults on demand in any device, to show and to test what happens then.

`FAULTS` names them and says what they do, `parse_fault` reads ``nan@2`` or ``nan@2+0.05``, and `FaultyDevice` is put
around a device.
"""

from devices.faults.device import FaultyDevice, create_faulty
from devices.faults.table import FAULTS, Fault, FaultKind, describe, parse_fault

__all__ = ["FAULTS", "Fault", "FaultKind", "FaultyDevice", "create_faulty", "describe", "parse_fault"]
