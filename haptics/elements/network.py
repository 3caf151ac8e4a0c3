r"""Simulation of masses, springs and many frictional contacts.

See Kikuuwe et al. 2006, section IV-A, Figs. 9 to 11. A contact is a model-C element between two *nodes*: bodies, bases
with prescribed motion, or the fixed wall. It is driven by their relative velocity u. Its friction force f, which has
the direction of u, acts on both. The formulation is local and therefore supports any number of contacts on any number
of bodies.

Every tick follows the block diagram of Fig. 10, with the masses as in (60):

.. math:: v_k = v_{k-1} + \tfrac{T}{M} (h_k - g_{k-1}), \qquad x_k = x_{k-1} + T v_k,

where h is the external force and :math:`g_{k-1}` the sum of the friction forces of the last tick and of the spring
forces :math:`K x_{k-1} + B v_{k-1}`. Then every contact is stepped at the new velocities, (38). This is symplectic
Euler integration, which in the long run neither adds energy to an undamped spring nor removes energy from it. For Fig.
11 the result is closer to the motion over rigid contacts than with implicitly integrated springs, which lose energy.

The delayed forces limit stiffness and damping, as in (63). With the matrices M, K and B of the masses, stiffnesses and
dampings of the whole network, springs and contacts alike, it is stable while its contacts stick if and only if the
largest eigenvalue of :math:`M^{-1} (T^2 K + 2 T B)` is less than 4; see `Network.stability_number`. A single mass on a
single contact needs no such limit with `haptics.elements.models.CompliantAdmittance`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.device import Vector
from haptics.elements.kernels import ELEMENT, PARAMETER_FIELDS, STATE_FIELDS, step_element
from haptics.elements.models import MasslessImpedance
from haptics.errors import ConfigurationError
from haptics.friction.laws import Law
from haptics.jit import kernel
from haptics.records import Rows, fields
from haptics.settings import Checked, bounded, documented

# --- bodies, contacts and results -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """End of springs and contacts: a body, a base with prescribed motion, or the fixed wall.

    Attributes
    ----------
    kind : {"body", "base", "wall"}
        Kind of the node.
    index : int
        Index among the nodes of this kind, for bodies in inputs and results, and for bases in inputs.
    row : int
        Index among all nodes.
    owner : Network
        Network that contains the node.
    """

    kind: Literal["body", "base", "wall"]
    index: int
    row: int = field(repr=False)
    owner: Network = field(repr=False)


@dataclass(frozen=True)
class NetworkResult:
    """Time series of a network of m bodies and c contacts; row k is the state after step k.

    Attributes
    ----------
    body_velocity : (n, m, 2) float array
        Velocity of the bodies [m/s].
    body_position : (n, m, 2) float array
        Position of the bodies [m].
    friction_force : (n, c, 2) float array
        Friction force of the contacts [N]. It acts on the second end, and its opposite on the first.
    displacement : (n, c, 2) float array
        Elastic displacement of the contacts [m].
    sliding_velocity : (n, c, 2) float array
        Sliding velocity of the contacts [m/s].
    sticking : (n, c) bool array
        True for contacts at rest.
    """

    body_velocity: NDArray[np.float64]
    body_position: NDArray[np.float64]
    friction_force: NDArray[np.float64]
    displacement: NDArray[np.float64]
    sliding_velocity: NDArray[np.float64]
    sticking: NDArray[np.bool_]


@documented
@dataclass(frozen=True)
class Body(Checked, section="body"):
    """Parameters of a body: mass [kg], greater than 0."""

    mass: float = bounded(above=0.0, unit="kg", doc="mass")


@documented
@dataclass(frozen=True)
class Spring(Checked, section="spring"):
    """Parameters of a spring and damper: stiffness [N/m] and damping [N s/m], at least 0, not both 0."""

    stiffness: float = bounded(minimum=0.0, unit="N/m", doc="stiffness")
    damping: float = bounded(minimum=0.0, unit="N s/m", doc="damping")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stiffness == 0.0 and self.damping == 0.0:
            raise ConfigurationError(
                "spring.stiffness = 0 with spring.damping = 0: at least one must be greater than 0."
            )


class Table:
    """Growing array of records with spare capacity."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._room: Rows = np.zeros(8, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, **fields: Any) -> Rows:
        """Append a record with these fields and return it, (1,); the view is valid until the next `add`."""
        if self._count == len(self._room):
            self._room = np.concatenate((self._room, np.zeros_like(self._room)))
        self._count += 1
        record = self._room[self._count - 1 : self._count]
        for name, value in fields.items():
            record[name] = value
        return record

    @property
    def records(self) -> Rows:
        """View of all records, (n,); it may be modified."""
        return self._room[: self._count]


def _finite(value: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Return `value` as a float array of this shape; raise `ConfigurationError` with its name otherwise."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} of type {type(value).__name__}: must be {shape} finite numbers.") from None
    if array.shape != shape:
        raise ConfigurationError(f"{name} of shape {array.shape}: must be {shape} finite numbers.")
    if not np.isfinite(array).all():
        raise ConfigurationError(f"{name} holds a value that is not finite: must be {shape} finite numbers.")
    return array


# --- kernels ----------------------------------------------------------------------------------------------------------

WALL = 0
BASE = 1
BODY = 2

_ENDS: list[tuple[Any, ...]] = [("first", "<i8"), ("second", "<i8")]

NODE = np.dtype([("kind", "<i8"), ("inverse_mass", "<f8"), *fields("<f8", "velocity position load", 2)])
"""A body, a base or the wall; `load` is the force [N] of springs and contacts that accelerates it."""

SPRING = np.dtype([*_ENDS, ("stiffness", "<f8"), ("damping", "<f8"), ("relaxed", "<f8", (2,))])
"""A spring and damper; `relaxed` is the relaxed position of the first end relative to the second [m]."""

CONTACT = np.dtype([*PARAMETER_FIELDS, *STATE_FIELDS, *_ENDS])
"""A model-C element between two nodes; it starts with the fields of an element record."""

BODY_ROW = np.dtype([("body_velocity", "<f8", (2,)), ("body_position", "<f8", (2,))])
"""Recorded state of a body at one step."""

CONTACT_ROW = np.dtype([*fields("<f8", "friction_force displacement sliding_velocity", 2), ("sticking", "?")])
"""Recorded state of a contact at one step."""


@kernel
def step_network(nodes: Rows, springs: Rows, contacts: Rows, T: float, motion: Any, push: Any) -> None:
    """Advance a network by one period under `motion` (bases, 2) [m/s] and `push` (bodies, 2) [N].

    The springs act first, at the old positions. Bodies then move by (60), and bases as prescribed. The contacts are
    stepped last, at the new velocities; (38).
    """
    for i in range(len(springs)):
        s = springs[i]
        a, b = nodes[s.first], nodes[s.second]
        for j in range(2):
            stretch = a.position[j] - b.position[j] - s.relaxed[j]
            force = s.stiffness * stretch + s.damping * (a.velocity[j] - b.velocity[j])
            a.load[j] -= force
            b.load[j] += force
    body, base = 0, 0
    for i in range(len(nodes)):
        n = nodes[i]
        for j in range(2):
            if n.kind == BODY:
                n.velocity[j] += T * n.inverse_mass * (push[body, j] + n.load[j])
            elif n.kind == BASE:
                n.velocity[j] = motion[base, j]
            n.position[j] += T * n.velocity[j]
            n.load[j] = 0.0
        if n.kind == BODY:
            body += 1
        elif n.kind == BASE:
            base += 1
    for i in range(len(contacts)):
        c = contacts[i]
        a, b = nodes[c.first], nodes[c.second]
        step_element(c, a.velocity[0] - b.velocity[0], a.velocity[1] - b.velocity[1])
        for j in range(2):
            a.load[j] -= c.friction_force[j]
            b.load[j] += c.friction_force[j]


@kernel
def run_network(
    nodes: Rows, springs: Rows, contacts: Rows, T: float, motions: Any, pushes: Any, bodies: Rows, frictions: Rows
) -> None:
    """Advance a network by n periods, filling `bodies` (n, bodies) and `frictions` (n, contacts).

    `motions` (n, bases, 2) and `pushes` (n, bodies, 2) may have a single row, for constant inputs.
    """
    for k in range(len(bodies)):
        motion, push = motions[min(k, len(motions) - 1)], pushes[min(k, len(pushes) - 1)]
        step_network(nodes, springs, contacts, T, motion, push)
        body = 0
        for i in range(len(nodes)):
            if nodes[i].kind == BODY:
                r = bodies[k, body]
                for j in range(2):
                    r.body_velocity[j] = nodes[i].velocity[j]
                    r.body_position[j] = nodes[i].position[j]
                body += 1
        for i in range(len(contacts)):
            f, c = frictions[k, i], contacts[i]
            f.sticking = c.sticking != 0
            for j in range(2):
                f.friction_force[j] = c.friction_force[j]
                f.displacement[j] = c.displacement[j]
                f.sliding_velocity[j] = c.sliding_velocity[j]


# --- network ----------------------------------------------------------------------------------------------------------

_LANCZOS_STEPS = 200  # maximum number of Lanczos steps: exact for as many bodies, accurate to about 1e-3 for more

_KINDS = {"wall": WALL, "base": BASE, "body": BODY}


@documented
@dataclass(frozen=True, eq=False)
class Network(Checked, section="network"):
    """Simulation of masses, springs and contacts in the plane.

    The module documents the computation of a tick. Parts may be added at any time, also between two steps. For motion
    along a line, set the second components to zero.

    Examples
    --------
    >>> from haptics import Coulomb
    >>> network = Network()
    >>> block, floor = network.body(mass=1.0), network.base()
    >>> network.spring(block, network.wall, stiffness=100.0)
    >>> rubbing = network.contact(block, floor, Coulomb(5.0), stiffness=3e4, damping=300.0)
    >>> run = network.simulate(1000, base_velocity=[(0.1, 0.0)])
    >>> round(float(run.body_position[:, block.index, 0].max()), 3)  # it swings past 5 N / (100 N/m)
    0.06
    """

    period: float = bounded(
        1e-3, above=0.0, maximum=1.0, unit="s", doc="time T between two steps, for which parts are made"
    )
    _nodes: Table = field(default_factory=partial(Table, NODE), init=False, repr=False)
    _springs: Table = field(default_factory=partial(Table, SPRING), init=False, repr=False)
    _contacts: Table = field(default_factory=partial(Table, CONTACT), init=False, repr=False)
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0), init=False, repr=False)
    # Elements of the contacts in order. They own the compiled code to which the records point.
    _elements: list[MasslessImpedance] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._node("wall")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the pickled state: compiled code has other addresses in this process."""
        self.__dict__.update(state)
        for record, element in zip(self._contacts.records, self._elements, strict=True):
            for name in ("law", "step"):
                record[name] = element.copy_record()[name][0]

    # --- construction -----------------------------------------------------------------------------------------------

    @property
    def wall(self) -> Node:
        """The fixed node."""
        return Node("wall", 0, 0, self)

    def body(self, mass: float, velocity: ArrayLike = (0.0, 0.0), position: ArrayLike = (0.0, 0.0)) -> Node:
        """Add a body of `mass` [kg] that starts with `velocity`, (2,) [m/s], at `position`, (2,) [m]."""
        start, place = _finite(velocity, (2,), "body.velocity"), _finite(position, (2,), "body.position")
        return self._node("body", inverse_mass=1.0 / Body(mass).mass, velocity=start, position=place)

    def base(self) -> Node:
        """Add a base, whose velocity is an input; before the first step it rests."""
        return self._node("base")

    def spring(
        self, first: Node, second: Node, stiffness: float, damping: float = 0.0, stretch: ArrayLike = (0.0, 0.0)
    ) -> None:
        """Add a linear isotropic spring and damper.

        Parameters
        ----------
        first, second : Node
            Ends of the spring.
        stiffness, damping : float
            K [N/m] and B [N s/m], at least 0, not both 0.
        stretch : (2,) array
            Present displacement of the first end from the relaxed position [m].

        Raises
        ------
        ConfigurationError
            If an end or a number is invalid.
        """
        rows = self._rows("spring", first, second)
        spring = Spring(stiffness, damping)
        places = self._nodes.records["position"][rows]
        relaxed = places[0] - places[1] - _finite(stretch, (2,), "spring.stretch")
        self._springs.add(
            first=rows[0], second=rows[1], stiffness=spring.stiffness, damping=spring.damping, relaxed=relaxed
        )

    def contact(self, first: Node, second: Node, law: Law, stiffness: float, damping: float) -> int:
        """Add a frictional contact: a model-C element, initially without force.

        Parameters
        ----------
        first, second : Node
            Ends of the contact. An anisotropic law applies to the first end sliding over the second.
        law : Law
            Friction law.
        stiffness, damping : float
            Stiffness K [N/m] and damping B [N s/m], as in `haptics.elements.models.MasslessImpedance`.

        Returns
        -------
        int
            Index of the contact in results.

        Raises
        ------
        ConfigurationError
            If an end or a number is invalid.
        """
        rows = self._rows("contact", first, second)
        element = MasslessImpedance(law, stiffness, damping, self.period)
        record = self._contacts.add(first=rows[0], second=rows[1])
        record[list(ELEMENT.names or ())] = element.copy_record()
        self._elements.append(element)
        return len(self._contacts) - 1

    def _node(self, kind: Literal["body", "base", "wall"], **fields: Any) -> Node:
        self._nodes.add(kind=_KINDS[kind], **fields)
        self._counts[kind] += 1
        return Node(kind, self._counts[kind] - 1, len(self._nodes) - 1, self)

    def _rows(self, label: str, *ends: Node) -> list[int]:
        for name, end in zip(("first", "second"), ends, strict=True):
            if not isinstance(end, Node) or end.owner is not self:
                raise ConfigurationError(
                    f"{label}.{name} = {end!r}: must be a body, a base or the wall of this network."
                )
        if ends[0] == ends[1]:
            raise ConfigurationError(f"{label}.first = {label}.second = {ends[0]!r}: must be two different nodes.")
        return [end.row for end in ends]

    # --- simulation -------------------------------------------------------------------------------------------------

    def step(self, base_velocity: ArrayLike | None = None, forces: ArrayLike | None = None) -> None:
        """Advance the network by one period.

        Parameters
        ----------
        base_velocity : (bases, 2) array, optional
            Velocity of every base [m/s], zero by default.
        forces : (bodies, 2) array, optional
            External force on every body [N], zero by default.

        Raises
        ------
        ConfigurationError
            If an input has another shape or contains a value that is not finite.
        """
        motion, push = self._inputs(base_velocity, forces)
        step_network(*self._records(), self.period, motion, push)

    def simulate(
        self, steps: int, base_velocity: ArrayLike | None = None, forces: ArrayLike | None = None
    ) -> NetworkResult:
        """Simulate `steps` periods from the present state; the network is not modified.

        Parameters
        ----------
        steps : int
            Number of periods, at least 0.
        base_velocity : (steps, bases, 2) or (bases, 2) array, optional
            Velocity of every base [m/s], variable or constant; zero by default.
        forces : (steps, bodies, 2) or (bodies, 2) array, optional
            External force on every body [N], variable or constant; zero by default.

        Returns
        -------
        NetworkResult
            Bitwise identical to the same number of calls of `step`. The simulation needs about 100 bytes for each
            contact and step; call `step` instead if the result would not fit in memory.

        Raises
        ------
        ConfigurationError
            If an input has another shape or contains a value that is not finite.
        """
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
            raise ConfigurationError(f"steps = {steps!r}: must be a whole number, at least 0.")
        motions, pushes = self._inputs(base_velocity, forces, steps)
        bodies = np.zeros((steps, self._counts["body"]), BODY_ROW)
        frictions = np.zeros((steps, len(self._contacts)), CONTACT_ROW)
        nodes, springs, contacts = self._records()
        run_network(nodes.copy(), springs, contacts.copy(), self.period, motions, pushes, bodies, frictions)
        columns = {name: bodies[name] for name in BODY_ROW.names or ()}
        columns |= {name: frictions[name] for name in CONTACT_ROW.names or ()}
        return NetworkResult(**{name: np.ascontiguousarray(column) for name, column in columns.items()})

    def _inputs(
        self, base_velocity: ArrayLike | None, forces: ArrayLike | None, steps: int | None = None
    ) -> list[NDArray[np.float64]]:
        """Validate the inputs of one step, or of `steps` with time as the first axis (one row if constant)."""
        arrays = []
        for name, value, kind in (("base_velocity", base_velocity, "base"), ("forces", forces, "body")):
            shape: tuple[int, ...] = (self._counts[kind], 2)
            if value is None:
                array = np.zeros(shape)
            else:
                if steps is not None:
                    with contextlib.suppress(ValueError):  # rows of different lengths are not an array
                        shape = (steps, *shape) if np.ndim(value) > 2 else shape
                array = _finite(value, shape, name)
            arrays.append(array if steps is None or array.ndim == 3 else array[None])
        return arrays

    def _records(self) -> tuple[Rows, Rows, Rows]:
        return self._nodes.records, self._springs.records, self._contacts.records

    # --- state ------------------------------------------------------------------------------------------------------

    @property
    def stability_number(self) -> float:
        """Fraction of the stability limit used by stiffness and damping while all contacts stick.

        Below 1 the held bodies settle. From 1 on they vibrate with growing amplitude until the contacts slip, as in
        Fig. 14 on the right. One mass on one contact uses ``(T^2 K + 2 T B) / (4 M)``. Sliding contacts are softer than
        sticking ones. The value is exact for up to 200 nodes, and at most about 0.1 % too low for more.

        It is a quarter of the largest eigenvalue of :math:`M^{-1} (T^2 K + 2 T B)`. With the delayed forces of (60) a
        mode of the network obeys :math:`(z - 1)^2 + a z + b (z - 1) = 0`, where :math:`a = T^2 K / M` and
        :math:`b = T B / M`. It leaves the unit circle through z = -1, where a + 2 b = 4.
        """
        nodes, springs, contacts = self._records()
        mobility = np.sqrt(nodes["inverse_mass"])
        first, second, stiffness, damping = (
            np.concatenate((springs[name], contacts[name])) for name in ("first", "second", "stiffness", "damping")
        )
        weight = self.period * (self.period * stiffness + 2.0 * damping)
        # Lanczos' method without re-orthogonalisation: without it eigenvalues at the ends of the spectrum repeat but do
        # not move.
        diagonal, side = list[float](), [0.0]
        before, vector = np.zeros(len(nodes)), np.random.default_rng(0).standard_normal(len(nodes))
        vector /= np.linalg.norm(vector)
        for _ in range(min(_LANCZOS_STEPS, len(nodes))):
            motion = mobility * vector
            force = weight * (motion[first] - motion[second])
            load = np.bincount(first, force, len(nodes)) - np.bincount(second, force, len(nodes))
            image = mobility * load
            diagonal.append(float(vector @ image))
            image -= diagonal[-1] * vector + side[-1] * before
            side.append(float(np.linalg.norm(image)))
            if side[-1] <= 1e-13 * max(diagonal):
                break
            before, vector = vector, image / side[-1]
        matrix = np.diag(diagonal) + np.diag(side[1 : len(diagonal)], -1)
        return float(np.linalg.eigvalsh(matrix)[-1]) / 4.0

    @property
    def body_velocity(self) -> Vector:
        """Velocity of the bodies, (bodies, 2) [m/s]."""
        return self._bodies("velocity")

    @property
    def body_position(self) -> Vector:
        """Position of the bodies, (bodies, 2) [m]."""
        return self._bodies("position")

    def _bodies(self, name: str) -> Vector:
        nodes = self._nodes.records
        return np.asarray(nodes[name][nodes["kind"] == BODY])

    @property
    def friction_force(self) -> Vector:
        """Friction force on the second ends of the contacts after the last step, (contacts, 2) [N].

        The opposite force acts on the first ends.
        """
        return self._contacts.records["friction_force"].copy()

    @property
    def displacement(self) -> Vector:
        """Elastic displacement of the contacts, (contacts, 2) [m]."""
        return self._contacts.records["displacement"].copy()

    @property
    def sliding_velocity(self) -> Vector:
        """Sliding velocity of the contacts, (contacts, 2) [m/s]."""
        return self._contacts.records["sliding_velocity"].copy()

    @property
    def sticking(self) -> NDArray[np.bool_]:
        """True for contacts at rest, (contacts,)."""
        return np.asarray(self._contacts.records["sticking"] != 0)
