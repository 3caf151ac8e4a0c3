"""Exact friction in MuJoCo: an element of model A as its passive force, compiled, without the interpreter.

::

    rubbing = PassiveFriction(model, data, RigidAdmittance(Stribeck(3.0, 4.0, 0.05), mass=2.0), dofs=(0, 1))
    with rubbing:
        mujoco.mj_step(model, data, 1000)

MuJoCo asks for passive forces once in a step, from a C function that it knows by ``mujoco.set_mjcb_passive``. It takes
a ``ctypes`` function (a number, a ``c_void_p`` and a PyCapsule are refused), and there is one for a whole process: only
one `PassiveFriction` can be in force at a time, and it leaves the steps of other models alone.

MuJoCo's semi-implicit Euler then moves the degrees of freedom just as model A would: ``v += T (h - f) / M`` with the
friction f that the law has at the *new* velocity (Kikuuwe et al. 2006, (26)). Sticking is a velocity of exactly zero.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import numba
import numpy as np

from haptics.elements.kernels import ELEMENT, step_element
from haptics.elements.models import RigidAdmittance
from haptics.errors import ConfigurationError
from haptics.jit import COMPILED
from haptics.parts import record_at

PAIR = np.dtype([("value", "<f8", (2,))])
"""Two neighbouring numbers of one of MuJoCo's vectors."""

RUBBING = np.dtype(
    [
        *np.lib.format.dtype_to_descr(ELEMENT),
        ("data", "<i8"),
        ("speed", "<i8"),
        ("applied", "<i8"),
        ("passive", "<i8"),
    ]
)
"""An element and where it rubs: the address of the ``mjData``, and of its ``qvel``, ``qfrc_applied``, ``qfrc_passive``
at the first of the two degrees of freedom."""

_ROUNDING = 1e-9


class PassiveFriction:
    """The friction of two neighbouring degrees of freedom, slides at a right angle, while this context is entered.

    What pushes against it are the forces in ``qfrc_applied`` and the passive ones (springs); those of actuators and
    contacts on the same degrees of freedom come after it in a step and are not seen: a sticking contact yields to them.

    Parameters
    ----------
    model, data : mujoco.MjModel, mujoco.MjData
        What is simulated.
    element : RigidAdmittance
        Law, mass and period; the last two must be those of the model.
    dofs : (int, int)
        The degrees of freedom, the second one the next after the first.

    Raises
    ------
    ConfigurationError
        If the model moves otherwise than model A would.
    """

    def __init__(self, model: Any, data: Any, element: RigidAdmittance, dofs: tuple[int, int] = (0, 1)) -> None:
        _require_fitting(model, element, dofs)
        self._data, self._element = data, element  # keeps alive what is known by its address
        record = np.zeros(1, RUBBING)
        ready = element.copy_record()
        for name in ELEMENT.names or ():
            record[name] = ready[name]
        record["data"] = data._address
        for name, vector in (("speed", data.qvel), ("applied", data.qfrc_applied), ("passive", data.qfrc_passive)):
            record[name] = vector[dofs[0] :].ctypes.data
        self._record = record
        self._callback = _compiled(record.ctypes.data)

    @property
    def friction_force(self) -> tuple[float, float]:
        """Friction force of the last step [N]; it has the direction of the velocity."""
        x, y = self._record["friction_force"][0].tolist()
        return x, y

    @property
    def sticking(self) -> bool:
        """Whether the contact was at rest in the last step."""
        return bool(self._record["sticking"][0])

    def __enter__(self) -> Self:
        """Put it in force.

        Raises
        ------
        ConfigurationError
            If another passive force is in force in this process.
        """
        import mujoco

        if mujoco.get_mjcb_passive() is not None:
            raise ConfigurationError("mujoco: another passive callback is in force; there can be one in a process.")
        mujoco.set_mjcb_passive(self._callback.ctypes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Put it out of force."""
        import mujoco

        mujoco.set_mjcb_passive(None)


def _require_fitting(model: Any, element: RigidAdmittance, dofs: tuple[int, int]) -> None:
    """Raise `ConfigurationError` unless the model moves these degrees of freedom as `element` moves its mass."""
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
        raise ConfigurationError(f"mass = {element.mass:g} kg: must be that of both joints, {masses} kg.")


def _compiled(address: int) -> Any:
    """Return the callback for the record at `address`."""

    def rub(_: int, data: int) -> None:
        s = record_at(address, RUBBING)
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
    return numba.cfunc(signature, nopython=True, error_model="numpy")(rub)
