"""Friction elements in the simulator MuJoCo; requires the package ``mujoco`` (``pip install mujoco``)."""

from haptics.mujoco.friction import PassiveFriction

__all__ = ["PassiveFriction"]
