"""What other packages bring, found by their entry points: whose it is, what is left out and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from haptics.errors import ConfigurationError
from haptics.plugins import LAWS, find_plugins
from tests.plugins import install

__all__ = ["install"]

TAKEN = frozenset({"coulomb"})


def test_nothing_is_imported_before_it_is_asked_for(install: Callable[..., None]) -> None:
    install("some-laws", "1.2", {"haptics.laws one": "some_laws:one"}, some_laws="raise ImportError('no SDK')")
    plugin = find_plugins(LAWS, TAKEN).usable["one"]
    assert str(plugin) == "law 'one' of the package some-laws 1.2"
    with pytest.raises(ConfigurationError) as caught:
        plugin.load()
    assert str(caught.value) == (
        "law 'one' of the package some-laws 1.2: cannot be imported (ImportError: no SDK). "
        "Mend it, or remove it: pip uninstall some-laws."
    )


@pytest.mark.parametrize("source", ["import sys; sys.exit(3)", "1 / 0", "one ="])
def test_whatever_a_module_does_when_it_is_imported_becomes_one_sentence(
    install: Callable[..., None], source: str
) -> None:
    install("some-laws", "1.2", {"haptics.laws one": "some_laws:one"}, some_laws=source)
    with pytest.raises(ConfigurationError, match=r"^law 'one' of the package some-laws 1\.2: cannot be imported .*\.$"):
        find_plugins(LAWS, TAKEN).usable["one"].load()


def test_a_name_that_is_taken_or_wanted_twice_is_left_out_and_nothing_else(install: Callable[..., None]) -> None:
    install("first", "1", {"haptics.laws coulomb": "first:law", "haptics.laws same": "first:law"}, first="law = 1")
    install("second", "2", {"haptics.laws same": "second:law", "haptics.laws good": "second:law"}, second="law = 2")
    found = find_plugins(LAWS, TAKEN)
    assert set(found.usable) == {"good"}
    assert found.usable["good"].load() == 2
    assert found.refused["coulomb"].startswith("law 'coulomb' of the package first 1: there is another law of that")
    assert all(package in found.refused["same"] for package in ("first 1", "second 2"))
    assert "brings another one of that name" in found.refused["same"]
