"""Motor stages: two motors that follow angles, behind one small interface.

- `stage`: the interface, `MotorStage`. An arm needs nothing else of its motors.
- `odrive`: an ODrive v3.6 with firmware 0.5 on USB, `OdriveStage`, with its `settings`. What it is made of:
  `native` (its native protocol), `usb` (finding and opening it, and its pipes), `rounds` (what a tick makes of both, or
  of lines of text), `checks` (what must be true before a motor may move, and how it is brought to move and to rest),
  `limits` (what the drive lets its motors do, against what the arm asks of them), `errors` (in words).
- `can`: ODrives on a CAN bus, from firmware 0.5 to Pro and S1, `CanStage`.
- `streamed` and `streaming`: what they share, with the threads; `motor_kernels`: the same for the tick; `choosing`:
  which of them the settings mean.
"""

from devices.arm.motors.can.stage import CanStage
from devices.arm.motors.choosing import make_stage
from devices.arm.motors.odrive import OdriveStage
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import MotorStage

__all__ = ["CanStage", "MotorStage", "OdriveSettings", "OdriveStage", "make_stage"]
