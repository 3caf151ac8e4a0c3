"""What the commands that run things by name share: choosing and listing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from haptics.settings import unknown


def chosen(kind: str, names: Iterable[str], all_names: Iterable[str], word: str = "") -> list[str]:
    """Return what `names` ask for, each once, in the order of asking; all for none.

    Parameters
    ----------
    kind : str
        What a name stands for, for the message.
    names, all_names : iterable of str
        What is asked for and what there is.
    word : str
        A name that asks for all, if there is such a one.

    Raises
    ------
    ConfigurationError
        On an unknown name.
    """
    wanted, known = list(dict.fromkeys(names)), list(all_names)
    allowed = [*known, word] if word else known
    for name in wanted:
        if name not in allowed:
            raise unknown(kind, name, allowed)
    return known if not wanted or (word and word in wanted) else wanted


def listed(titles: Mapping[str, str]) -> str:
    """Return names and titles in two columns."""
    width = max(map(len, titles))
    return "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())
