"""Mechanics of an arm.

- `linkage`: kinematics of two links in series or a five-bar linkage.
- `dynamics`: inertia, Coriolis and gravity terms of the links.
- `drive`: rotor, coupling, friction and encoder of a joint, and the solvers of a step.
- `plant`: the simulated arm on a surface, advanced in small steps.
"""
