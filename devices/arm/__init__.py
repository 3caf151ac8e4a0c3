"""The admittance arm: kinematics, dynamics, elastic joints with friction, and the servo laws that make it follow.

- `devices.arm.flatness`: smooth friction and stiffness laws with exact derivatives, and the feed-forward from them.
- `devices.arm.mechanics.linkage`: two links in series or a five-bar linkage, and where they stand.
- `devices.arm.mechanics.dynamics`, `five_bar`, `joint`, `plant`: what the links weigh, their drives, and how both move.
- `devices.arm.hybrid.control`, `fractional`: control of position along a surface and of force across it.
- `devices.arm.hybrid.simulation`: that arm under that control.
- `devices.arm.device`: the arm behind the device contract, made of motors, sensor and references; its `settings`.
- `devices.arm.motors`: motor stages behind one small interface: ODrive.
- `devices.arm.sensors`: force sensors at its end: ATI Net F/T, OnRobot HEX, OptoForce.
"""
