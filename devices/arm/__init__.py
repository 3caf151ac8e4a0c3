"""Admittance arm: kinematics, dynamics, elastic joints with friction, and servo laws.

- `devices.arm.flatness`: smooth friction and stiffness laws with exact derivatives, and the feed-forward based on them.
- `devices.arm.mechanics.linkage`: kinematics of two links in series or a five-bar linkage.
- `devices.arm.mechanics.dynamics`, `five_bar`, `joint`, `plant`: inertia of the links, drives, and equations of motion.
- `devices.arm.hybrid.control`, `fractional`: control of position along a surface and of force normal to it.
- `devices.arm.hybrid.simulation`: simulation of an arm under hybrid control.
- `devices.arm.device`: the device driver of the arm, built from motors, sensor and references; its `settings`.
- `devices.arm.motors`: motor stages behind one small interface: ODrive.
- `devices.arm.sensors`: force sensors at the end effector: ATI Net F/T, OnRobot HEX, OptoForce.
"""
