"""Haply hAPI board with a pantograph, a backdrivable two-motor device: torques in, angles out.

The arms must be *held at their home pose while the device is opened*, because the board counts angles from that pose.
It has no absolute encoder and cannot detect an error. To open it:

1. Move both arms to the home pose of the mechanism (`devices.pantograph.mechanisms`) and hold them there.
2. Start with ``device.at_home=true``, which confirms that you hold them.
3. When prompted, or after a second, move the handle into the workspace. Rendering begins when it is there.

**The board has no watchdog.** Its motors keep the last commanded torque even if the host, the cable or the run fails; a
reset does not set it to zero either. This driver therefore sends zero torques, and verifies the answer, before every
reset and at every end, also after errors. A second small process, the *guardian* (`devices.common.guardian`), also
holds the port and does the same when the driver dies or falls silent. If the cable is pulled out, the host cannot
intervene: only the switch of the motors' supply helps. Keep it in reach.

The board's protocol has no delimiters, lengths or checksums: after one lost byte the two ends disagree on the start of
a message. The driver detects a missing or implausible answer, resynchronises the board, and sends it the last known
angles. The position error afterwards equals the motion of the handle in the meantime, and after a few losses the run
ends. Each resynchronisation also adds one whole turn to the angles, which distinguishes late replies from new ones.

- `mechanisms`: USB identities of boards, geometries, and the wiring of the motors to the board.
- `board`: connection to one board, with its messages, resynchronisation and exchange (`devices.common.exchange`).
- `guardian`: zero torques at the end, by the driver or the guardian.
- `kernels`, `device`: computation per tick; settings and the device driver.
"""
