"""Fault injection: simulated faults in any device, for demonstrations and tests.

`FAULTS` contains their names and descriptions, `parse_fault` parses ``nan@2`` or ``nan@2+0.05``, and `FaultyDevice`
wraps a device.
"""

from devices.faults.device import FaultyDevice, create_faulty
from devices.faults.table import FAULTS, Fault, FaultKind, describe, parse_fault

__all__ = ["FAULTS", "Fault", "FaultKind", "FaultyDevice", "create_faulty", "describe", "parse_fault"]
