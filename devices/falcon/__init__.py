"""Novint Falcon by plain USB, without software of its maker: motor numbers out, encoder counts in.

The Falcon has three translational axes. Friction is rendered in a plane; a spring and a damper hold the third axis
(`devices.common.plane`).

**Guarantees about the force.** At every end of a run, also after errors, the driver sends motor numbers of zero and
waits for the answer. It does so too when no command arrives within the watchdog's time. A second small process, the
guardian (`devices.common.guardian`), sends zeros when the driver is killed or stopped. If the computer itself stops or
the cable is unplugged, the firmware determines how long the last force lasts; its sources state no timeout. This could
not be tested: the driver has run with emulated devices only.

- `kinematics`: positions, crank angles and torques of the delta robot.
- `wire`: USB device, FTDI chip, boot loader, and packets of the firmware.
- `guardian`: zero force when the driver has failed.
- `device`: settings, homing, exchange of packets, computation per tick, and the device driver.
"""
