"""Selection and listing of named items, for commands that run items by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from haptics.settings import unknown_name


def chosen(kind: str, names: Iterable[str], all_names: Iterable[str], word: str = "") -> list[str]:
    """Return the selected names without duplicates, in the order given; all names if none is given.

    Parameters
    ----------
    kind : str
        Kind of item, for the error message.
    names, all_names : iterable of str
        Requested names and available names.
    word : str
        Name that selects all items, if there is one.

    Raises
    ------
    ConfigurationError
        If a name is unknown.
    """
    wanted, known = list(dict.fromkeys(names)), list(all_names)
    allowed = [*known, word] if word else known
    for name in wanted:
        if name not in allowed:
            raise unknown_name(kind, name, allowed)
    return known if not wanted or (word and word in wanted) else wanted


def listed(titles: Mapping[str, str]) -> str:
    """Format names and titles in two columns."""
    width = max(map(len, titles))
    return "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
