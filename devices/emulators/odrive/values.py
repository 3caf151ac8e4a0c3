"""Properties by name, some of which lie in a record that kernels work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from numpy.typing import NDArray


class Values(MutableMapping[str, Any]):
    """What properties hold, by name. Those of the record are always there; others are 0 until they are set.

    Parameters
    ----------
    record : (1,) structured array
        Where some of them lie.
    fields : mapping of str to str
        Name of a property to its field there.
    """

    def __init__(self, record: NDArray[Any], fields: Mapping[str, str]) -> None:
        self._fields = {name: record[field] for name, field in fields.items()}
        self._others: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a property's value."""
        field = self._fields.get(name)
        return self._others[name] if field is None else field.item()

    def __setitem__(self, name: str, value: Any) -> None:
        """Give a property a value."""
        field = self._fields.get(name)
        if field is None:
            self._others[name] = value
        else:
            field[0] = value

    def __delitem__(self, name: str) -> None:
        """Forget a property; one of the record cannot be."""
        del self._others[name]

    def clear(self) -> None:
        """Have all of them hold 0 again."""
        self._others.clear()
        for field in self._fields.values():
            field[0] = 0

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        yield from self._fields
        yield from self._others

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._fields) + len(self._others)

    def __ior__(self, other: Mapping[str, Any]) -> Values:
        """Give several properties a value."""
        self.update(other)
        return self
