"""An ODrive v3.6 with firmware 0.5.6, packet for packet, with motors behind it that really turn.

    backend = emulated_odrive()
    stage = OdriveStage(backend=backend)

- `table`: what it says it can do. `firmware`: packets in and out. `axis` and its `values`: what an axis holds.
- `control_kernels`: its encoder, control law, watchdog and errors, compiled.
- `text`: lines in and out, on its serial port. `pipes`: both pairs of endpoints. `can_simple`: frames on a CAN bus.
- `plant`: what the motors turn. `board`: all of it at its place on the bus, with its `faults`.
- `usb_backend`: the bus, for pyusb. `child`: the same in a process of its own, `serving` it to others, and
  `remote` the backend for pyusb in front of it.
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
        What its motors turn; by default two flywheels.
    serial : int
        Its serial number.
    latency : float
        Every transfer takes so long [s].
    faults : iterable of str
        What goes wrong and when, ``NAME@SECONDS+DURATION`` (`devices.emulators.odrive.faults`).

    Raises
    ------
    ConfigurationError
        On an unknown fault.
    """
    from devices.emulators.odrive.board import EmulatedOdrive
    from devices.emulators.odrive.usb_backend import EmulatedOdriveBackend

    return EmulatedOdriveBackend(EmulatedOdrive(plant, serial=serial, faults=faults), latency=latency)
