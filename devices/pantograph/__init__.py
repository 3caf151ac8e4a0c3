"""The Haply hAPI board with a pantograph on it: a backdrivable device with two motors, torques in and angles out.

The arms must be *held at their home pose while the device is opened*: the board counts from where they are then. It
has no absolute encoder and cannot know better. Open it like this:

1. Put both arms to the home pose of the mechanism (`devices.pantograph.mechanisms`) and hold them there.
2. Start, with ``device.at_home=true`` as your word that you do.
3. Once told so, or after a second, bring the handle into the workspace. Rendering begins when it is there.

**The board has no watchdog.** Its motors keep the last torque they were given, whatever becomes of the host, of the
cable, or of the run; a reset does not take it away either. This driver therefore sends zero torques, and makes sure of
the answer, before every reset and at every end, also after errors. A second small process, the *guardian*
(`devices.common.bus.guardian`), holds the port as well and does the same when the driver dies or falls silent. Against
a cable that is pulled out nothing in the host can help: only the switch of the motors' supply does. Have it in reach.

The board's protocol has no marks, lengths or checksums: one lost byte and both ends disagree on where a message
begins. The driver notices a missing or implausible answer, brings the board back in step, and tells it the last known
angles; the position is off afterwards by what the handle moved meanwhile, and after a few times the run ends. Each time
it tells it also one more whole turn, by which replies to earlier messages can be told from those to later ones.

- `mechanisms`: the geometries, and how the motors are wired to the board.
- `identities`, `ports`: the board on USB, and its serial port. `wire`: messages as bytes.
- `line`: one board, in step or not. `exchange`: the thread that talks to it.
- `guardian`: coming to rest, by the driver or the guardian.
- `settings`, `kernels`, `device`: what a person can choose, the mathematics of a tick, and the device itself.
"""
