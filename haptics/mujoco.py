"""Exact friction in MuJoCo: a compiled element of model A as a passive force.

::

    rubbing = PassiveFriction(model, data, RigidAdmittance(Stribeck(3.0, 4.0, 0.05), mass=2.0), dofs=(0, 1))
    with rubbing:
        mujoco.mj_step(model, data, 1000)

MuJoCo computes passive forces once per step and then calls the C function registered with ``mujoco.set_mjcb_passive``.
It requires a ``ctypes`` function (it rejects a number, a ``c_void_p`` and a PyCapsule). The callback is global to the
process: only one `PassiveFriction` can be active at a time. It does not affect the steps of other models.

MuJoCo's semi-implicit Euler method then moves the degrees of freedom exactly as model A does: ``v += T (h - f) / M``
with the friction f of the law at the *new* velocity (Kikuuwe et al. 2006, (26)). Sticking is a velocity of exactly
zero.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numba
import numpy as np

from haptics.elements.kernels import ELEMENT, step_element
from haptics.elements.models import RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.jit import COMPILED, record_at
from haptics.records import fields

__all__ = ["PassiveFriction"]

PAIR = np.dtype([("value", "<f8", (2,))])
"""Two neighbouring elements of a MuJoCo vector."""

SLIDING_CONTACT = np.dtype([*np.lib.format.dtype_to_descr(ELEMENT), *fields("<i8", "data speed applied passive")])
"""Record of an element and of its degrees of freedom in MuJoCo.

Addresses of the ``mjData``, and of its ``qvel``, ``qfrc_applied`` and ``qfrc_passive`` at the first of the two degrees
of freedom.
"""

_ROUNDING = 1e-9


class PassiveFriction:
    """Friction of two neighbouring orthogonal slide joints, active while the context is entered.

    The applied force is the sum of ``qfrc_applied`` and the passive forces (springs). Forces of actuators and contacts
    on the same degrees of freedom are computed later in the step and not considered: a sticking contact yields to them.

    Parameters
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        The simulated model and its data.
    element : RigidAdmittance
        Law, mass and period. Mass and period must match the model.
    dofs : (int, int)
        Indices of the degrees of freedom; the second must follow the first.

    Raises
    ------
    ConfigurationError
        If the model moves differently from model A.
    """

    def __init__(self, model: Any, data: Any, element: RigidAdmittance, dofs: tuple[int, int] = (0, 1)) -> None:
        _require_fitting(model, element, dofs)
        self._data, self._element = data, element  # keep alive: the callback uses their addresses
        record = np.zeros(1, SLIDING_CONTACT)
        ready = element.copy_record()
        for name in ELEMENT.names or ():
            record[name] = ready[name]
        record["data"] = data._address
        for name, vector in (("speed", data.qvel), ("applied", data.qfrc_applied), ("passive", data.qfrc_passive)):
            record[name] = vector[dofs[0] :].ctypes.data
        self._record = record
        address = record.ctypes.data

        def rub(_: int, data: int) -> None:
            s = record_at(address, SLIDING_CONTACT)
            if s.data != data:
                return
            speed, applied = record_at(s.speed, PAIR), record_at(s.applied, PAIR)
            passive = record_at(s.passive, PAIR)
            for i in range(2):
                s.mass_velocity[i] = speed.value[i]
            step_element(s, applied.value[0] + passive.value[0], applied.value[1] + passive.value[1])
            for i in range(2):
                passive.value[i] -= s.friction_force[i]

        signature = numba.types.void(numba.types.intp, numba.types.intp)
        self._callback = numba.cfunc(signature, nopython=True, error_model="numpy")(rub)

    @property
    def friction_force(self) -> tuple[float, float]:
        """Friction force of the last step [N], in the direction of the velocity."""
        x, y = self._record["friction_force"][0].tolist()
        return x, y

    @property
    def sticking(self) -> bool:
        """True if the contact was at rest in the last step."""
        return bool(self._record["sticking"][0])

    def __enter__(self) -> Self:
        """Register the passive force.

        Raises
        ------
        ConfigurationError
            If another passive force is registered in this process.
        """
        import mujoco

        if mujoco.get_mjcb_passive() is not None:
            raise ConfigurationError("mujoco: another passive callback is in force; there can be one in a process.")
        mujoco.set_mjcb_passive(self._callback.ctypes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Unregister the passive force."""
        import mujoco

        mujoco.set_mjcb_passive(None)


def _require_fitting(model: Any, element: RigidAdmittance, dofs: tuple[int, int]) -> None:
    """Raise `ConfigurationError` unless the model moves these joints like the mass of `element`."""
    import mujoco

    first, second = dofs
    if not COMPILED:
        raise ConfigurationError("NUMBA_DISABLE_JIT is set: there is no compiled function that MuJoCo could call.")
    if second != first + 1 or not 0 <= first < model.nv - 1:
        raise ConfigurationError(f"dofs = {dofs}: must be neighbours, from 0 to {model.nv - 1}.")
    if not np.isclose(model.opt.timestep, element.period, rtol=_ROUNDING):
        raise ConfigurationError(
            f"period = {element.period:g} s: must be the model's timestep, {model.opt.timestep:g} s."
        )
    if model.opt.integrator not in (mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_IMPLICITFAST):
        raise ConfigurationError(
            "mujoco: the model's integrator must be Euler or implicitfast, which step as model A does."
        )
    if np.any(model.dof_damping[first : second + 1]):
        raise ConfigurationError("mujoco: the damping of these joints must be 0; give the law a viscosity instead.")
    masses = model.dof_M0[first : second + 1]
    if not np.allclose(masses, element.mass, rtol=_ROUNDING):
        raise ConfigurationError(f"mass = {element.mass:g} kg: must equal the masses of both joints, {masses} kg.")
