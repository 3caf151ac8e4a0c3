"""Motor stages: two motors that track angles, behind one small interface.

- `stage`: the interface, `MotorStage`, which is all that an arm uses of its motors; the thread that communicates with
  the drive, and the kernels of a tick. `settings`: settings of a drive.
- `odrive`: an ODrive v3.6 with firmware 0.5 on USB, `OdriveStage`, with the native protocol or lines of text. `native`:
  the native protocol. `usb`: discovery, pipes, and transfers in flight.
- `can_stage`: ODrives on a CAN bus, from firmware 0.5 to Pro and S1, `CanStage`. `can_bus`: frames and interface.
- `errors`: names of error bits.
"""

from __future__ import annotations

from devices.arm.motors.can_stage import CanStage
from devices.arm.motors.odrive import OdriveStage
from devices.arm.motors.stage import MotorStage

__all__ = ["CanStage", "MotorStage", "OdriveStage"]
