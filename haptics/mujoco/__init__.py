"""Friction of this project in the simulator MuJoCo; needs the package ``mujoco`` (``pip install mujoco``)."""

from haptics.mujoco.friction import PassiveFriction

__all__ = ["PassiveFriction"]
