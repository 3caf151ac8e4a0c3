"""A setting is said once, where it is declared: nothing repeats its text, its bounds or its type."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections import Counter
from typing import Any

import pytest

from tests.processes import ROOT

PACKAGES = ("haptics", "devices", "calibration", "apps")
_USES = re.compile(r"^from haptics\.settings import .*\b(?:bounded|choice|documented|flag|free|string)\b", re.MULTILINE)
_BY_HAND = re.compile(r"isinstance\((?:self\.\w+|getattr\(self, \w+\)), (?:int|str|bool)\)")


def _modules() -> list[str]:
    files = (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py")))
    return [
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in files
        if file.name != "__init__.py" and _USES.search(file.read_text(encoding="utf-8"))
    ]


MODULES = _modules()


def _classes() -> list[type]:
    """Return every public class that declares settings."""
    found = [
        cls
        for name in MODULES
        for cls in vars(importlib.import_module(name)).values()
        if isinstance(cls, type) and cls.__module__ == name and dataclasses.is_dataclass(cls)
    ]
    return [cls for cls in found if _declared(cls) and not cls.__name__.startswith("_")]


def _declared(cls: type) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if field.metadata]


def _listed(cls: type) -> Counter[str]:
    """Return how often each name stands in the list *Attributes* of a docstring."""
    section = (cls.__doc__ or "").partition("Attributes\n----------\n")[2]
    heads = re.findall(r"^(\w+(?:, \w+)*) : ", re.split(r"\n\w+\n-{3,}\n", section)[0], re.MULTILINE)
    return Counter(name for head in heads for name in head.split(", "))


def test_the_declarations_are_found() -> None:
    names = {cls.__name__ for cls in _classes()}
    assert {"StickSettings", "Limits", "Stribeck", "MasslessImpedance", "Excitation", "SessionSettings"} <= names
    assert len(names) > 60


def test_every_declared_setting_has_a_text_and_stands_in_the_docstring_once() -> None:
    wrong = {
        f"{cls.__module__}.{cls.__name__}.{field.name}": _listed(cls)[field.name]
        for cls in _classes()
        for field in _declared(cls)
        if not field.metadata["doc"] or _listed(cls)[field.name] != 1
    }
    assert not wrong, "add `documented`, or leave a declared field out of the list that is written by hand"


def test_every_declared_setting_has_a_type_that_is_checked() -> None:
    unchecked = {
        f"{cls.__module__}.{cls.__name__}.{field.name}: {field.type}"
        for cls in _classes()
        for field in _declared(cls)
        if "words" not in field.metadata
        and field.type not in (("str",) if "allowed" in field.metadata else ("float", "int"))
    }
    assert not unchecked


@pytest.mark.parametrize("name", MODULES)
def test_no_class_checks_the_type_of_a_setting_by_hand(name: str) -> None:
    source = (ROOT / name.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    assert not _BY_HAND.findall(source), "the annotation of a declared field says its type, and `check` checks it"
