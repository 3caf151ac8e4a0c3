"""Endpoints of the emulated drive, from the file ``endpoints.txt``.

The table is a part of the one of firmware 0.5.6; its checksum therefore differs.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AXIS_BASES = (130, 448)
"""First endpoint of each axis."""


@dataclass(frozen=True)
class Row:
    """Endpoint.

    Attributes
    ----------
    path : str
        Full name with dots.
    number : int
        Address.
    kind : str
        Type of its value; ``function``.
    writable : bool
        Whether it can be written.
    default : float
        Value after the supply is switched on for the first time.
    inputs, outputs : tuple of (str, str, int)
        Arguments and results of a function: name, type and address.
    """

    path: str
    number: int
    kind: str
    writable: bool = False
    default: float = 0
    inputs: tuple[tuple[str, str, int], ...] = ()
    outputs: tuple[tuple[str, str, int], ...] = ()


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return all endpoints in the order of the table."""
    listed = []
    places = {"drive": [("", 0)], "axis": [(f"axis{axis}.", base) for axis, base in enumerate(AXIS_BASES)]}
    text = Path(__file__).with_name("endpoints.txt").read_text(encoding="ascii")
    for section in text.split("[")[1:]:
        title, _, body = section.partition("]")
        for prefix, base in places[title]:
            for line in body.strip().splitlines():
                name, number, kind, *rest = line.split()
                if kind != "function":
                    access, default = (*rest, "0")[:2]
                    value = float(default) if kind == "float" else int(default)
                    listed.append(Row(prefix + name, base + int(number), kind, "w" in access, value))
                    continue
                split = rest.index(">") if ">" in rest else len(rest)
                inputs, outputs = (
                    tuple((word, form, base + int(place)) for word, form, place in (part.split(":") for part in parts))
                    for parts in (rest[:split], rest[split + 1 :])
                )
                listed.append(Row(prefix + name, base + int(number), kind, inputs=inputs, outputs=outputs))
    return tuple(listed)


@functools.cache
def properties() -> tuple[Row, ...]:
    """Return all endpoints with a value: the properties, and the arguments and results of functions."""
    found = []
    for row in rows():
        if row.kind != "function":
            found.append(row)
        for part, writable in ((row.inputs, True), (row.outputs, False)):
            found += [Row(f"{row.path}.{name}", number, kind, writable) for name, kind, number in part]
    return tuple(found)


def table_text() -> bytes:
    """Return the table as the drive sends it: JSON without spaces, objects within objects."""
    root: list[dict[str, Any]] = [{"name": "", "id": 0, "type": "json", "access": "r"}]
    for row in rows():
        *parents, name = row.path.split(".")
        members = root
        for parent in parents:
            found = next((member for member in members if member["name"] == parent), None)
            if found is None:
                found = {"name": parent, "type": "object", "members": []}
                members.append(found)
            members = found["members"]
        member: dict[str, Any] = {"name": name, "id": row.number, "type": row.kind}
        if row.kind == "function":
            for key, part, access in (("inputs", row.inputs, "rw"), ("outputs", row.outputs, "r")):
                member[key] = [
                    {"name": argument, "id": number, "type": kind, "access": access} for argument, kind, number in part
                ]
        else:
            member["access"] = "rw" if row.writable else "r"
        members.append(member)
    return json.dumps(root, separators=(",", ":")).encode()
