"""Motor stages: two motors that follow angles, behind one small interface.

- `stage`: the interface, `MotorStage`. An arm needs nothing else of its motors.
- `odrive`: an ODrive v3.6 with firmware 0.5 on USB, `OdriveStage`, with its `settings`. What it is made of:
  `wire` (packets as bytes), `endpoints` (what the drive says it can do, kept on disk), `usb` (finding and opening it,
  and its pipes), `line` (many requests under way at once), `drive` (properties and functions by name), `checks` (what
  must be true before a motor may move, and how it is brought to move and to rest), `limits` (what the drive lets its
  motors do, against what the arm asks of them), `errors` (in words).
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
