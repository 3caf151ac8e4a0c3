"""Nodes, parameters and results of networks; see `haptics.elements.network.network`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.settings import bounded, check, documented

if TYPE_CHECKING:
    from haptics.elements.network.network import Network


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
class Body:
    """Parameters of a body: mass [kg], greater than 0."""

    mass: float = bounded(above=0.0, unit="kg", doc="mass")

    def __post_init__(self) -> None:
        check(self, "body")


@documented
@dataclass(frozen=True)
class Spring:
    """Parameters of a spring and damper: stiffness [N/m] and damping [N s/m], at least 0, not both 0."""

    stiffness: float = bounded(minimum=0.0, unit="N/m", doc="stiffness")
    damping: float = bounded(minimum=0.0, unit="N s/m", doc="damping")

    def __post_init__(self) -> None:
        check(self, "spring")
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


def finite(value: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
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


def finite_over_time(value: ArrayLike, shape: tuple[int, ...], steps: int, name: str) -> NDArray[np.float64]:
    """Return `value` with time as the first axis, with a single row if it is constant."""
    try:
        changing = np.ndim(value) > len(shape)
    except ValueError:  # rows of different lengths are not an array
        changing = False
    return finite(value, (steps, *shape), name) if changing else finite(value, shape, name)[None]
