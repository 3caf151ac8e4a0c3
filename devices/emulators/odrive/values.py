"""Properties by name, some of which are stored in a record for kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from numpy.typing import NDArray


class Values(MutableMapping[str, Any]):
    """Values of properties, by name.

    Properties of the record always exist; others are 0 until they are set.

    Parameters
    ----------
    record : (1,) structured array
        Record that stores some of them.
    fields : mapping of str to str
        Field of the record by property name.
    """

    def __init__(self, record: NDArray[Any], fields: Mapping[str, str]) -> None:
        self._fields = {name: record[field] for name, field in fields.items()}
        self._others: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the value of a property."""
        field = self._fields.get(name)
        return self._others[name] if field is None else field.item()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the value of a property."""
        field = self._fields.get(name)
        if field is None:
            self._others[name] = value
        else:
            field[0] = value

    def __delitem__(self, name: str) -> None:
        """Delete a property, which must not be in the record."""
        del self._others[name]

    def clear(self) -> None:
        """Reset all properties to 0."""
        self._others.clear()
        for field in self._fields.values():
            field[0] = 0

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        yield from self._fields
        yield from self._others

    def __len__(self) -> int:
        """Return the number of properties."""
        return len(self._fields) + len(self._others)

    def __ior__(self, other: Mapping[str, Any]) -> Values:
        """Set several properties."""
        self.update(other)
        return self
