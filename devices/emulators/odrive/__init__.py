"""ODrive v3.6 with firmware 0.5.6, emulated packet by packet, with simulated motors.

    backend = emulated_odrive()
    stage = OdriveStage(backend=backend)

- `table`: its table of endpoints. `firmware`: packets in and out. `axis` and its `values`: properties of an axis.
- `control_kernels`: encoder, control law, watchdog and errors, compiled.
- `text`: lines in and out, at its serial port. `pipes`: both pairs of endpoints. `can_simple`: frames on a CAN bus.
- `plant`: load of the motors. `board`: the drive on the bus, with its `faults`.
- `usb_backend`: the bus, for pyusb. `child`: the bus in a separate process, `serving` its access for other processes,
  and `remote` the corresponding backend for pyusb.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devices.emulators.odrive.plant import Plant
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend

__all__ = ["emulated_odrive"]


def emulated_odrive(
    plant: Plant | None = None, *, serial: int = 0x2065339F304B, latency: float = 0.0, faults: Iterable[str] = ()
) -> EmulatedOdriveBackend:
    """Return a backend for pyusb with one drive on its bus.

    Parameters
    ----------
    plant : Plant, optional
        Load of its motors; by default two flywheels.
    serial : int
        Serial number.
    latency : float
        Duration of every transfer [s].
    faults : iterable of str
        Faults with their times, ``NAME@SECONDS+DURATION`` (`devices.emulators.odrive.faults`).

    Raises
    ------
    ConfigurationError
        If a fault is unknown.
    """
    from devices.emulators.odrive.board import EmulatedOdrive
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend

    return EmulatedOdriveBackend(EmulatedOdrive(plant, serial=serial, faults=faults), latency=latency)
