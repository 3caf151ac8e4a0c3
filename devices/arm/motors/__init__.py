"""Motor stages: two motors that track angles, behind one small interface.

- `stage`: the interface, `MotorStage`, which is all that an arm uses of its motors.
- `odrive`: an ODrive v3.6 with firmware 0.5 on USB, `OdriveStage`, with its `settings`. Its parts: `native` (the native
  protocol), `usb` (device discovery and pipes), `rounds` (exchange of a tick over either protocol), `checks`
  (requirements before a motor may move; arming and disarming), `limits` (comparison of the drive's limits with the
  requirements of the arm), `errors` (names of error bits).
- `can`: ODrives on a CAN bus, from firmware 0.5 to Pro and S1, `CanStage`.
- `streamed` and `streaming`: the common parts with the threads; `motor_kernels`: the common kernels of a tick;
  `choosing`: selection of the stage from the settings.
"""

from devices.arm.motors.can.stage import CanStage
from devices.arm.motors.choosing import make_stage
from devices.arm.motors.odrive import OdriveStage
from devices.arm.motors.settings import OdriveSettings
from devices.arm.motors.stage import MotorStage

__all__ = ["CanStage", "MotorStage", "OdriveSettings", "OdriveStage", "make_stage"]
