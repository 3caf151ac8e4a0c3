"""House rules of CONTRIBUTING: nothing dead, plain words, every backend documented."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.processes import ROOT

PRODUCT = ("haptics", "devices", "calibration", "apps")
FILES = sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))

CALLED_FROM_OUTSIDE = {
    # for one's own programs, in the documentation or as the protocol of a driver
    *("run_many", "Ported", "Compensating", "lemniscate", "SmoothStribeck", "run_plant", "read_parameter_file"),
    *("Telling", "Explaining", "to_frame", "region_at"),
    *("parse_parameter_file", "passive_joints", "phase_at", "tracking_error", "find_sticks"),
    # by libraries, under these names
    *("get_cache_path", "get_source_stamp", "get_disambiguator", "cache_path", "from_function"),
    *("_index_key", "load_overload"),
    *("visit_Constant", "visit_Compare", "visit_UnaryOp", "do_GET", "log_message", "intr_read", "intr_write"),
    *(
        "print_help",
        "_check_value",
        "mousePressEvent",
        "mouseMoveEvent",
        "sizeHint",
        "hasHeightForWidth",
        "boundingRect",
        "mouseClickEvent",
        "get_parent",
        "get_endpoint_descriptor",
    ),
    *("is_precise", "get_audio_data"),
    # by the name of a fault
    *("lose_request_byte", "lose_reply_byte", "shorten_reply", "delay_replies"),
}
"""Functions and classes that the product names once only, where it defines them."""

PRIVATE_WORDS = {
    "pulsation": "natural frequency, angular velocity",
    "made up for": "compensated, caught up",
    "make up for": "compensate",
    "makes up for": "compensates",
    "nobody's silence": "count ticks, not wall time",
    "present load for none": "tare",
    "paid for by": "absorbed by",
}
"""Words of our own, and the field's words for the same."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_whatever_is_defined_is_used() -> None:
    places = [*FILES, *(ROOT / "examples").rglob("*.py")]
    words = Counter(word for path in places for word in re.findall(r"[A-Za-z_]\w*", _without_strings(path)))
    defined = {
        node.name: name_of(path)
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
    }
    unused = {name: place for name, place in defined.items() if words[name] <= 1 and name not in CALLED_FROM_OUTSIDE}
    assert unused == {}


def _without_strings(path: Path) -> str:
    """Return the code of a file without docstrings, in which a name may live on for long."""
    return re.sub(r'"""(?:.|\n)*?"""', "", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("word", PRIVATE_WORDS)
def test_words_are_those_of_the_field(word: str) -> None:
    found = [name_of(path) for path in FILES if re.search(rf"\b{word}\b", path.read_text(encoding="utf-8"))]
    assert found == [], f"say {PRIVATE_WORDS[word]} instead of {word!r}"


def test_every_module_and_package_says_what_it_is_for() -> None:
    assert [name_of(path) for path in FILES if not ast.get_docstring(tree_of(path))] == []


def test_every_backend_is_documented_examined_and_looked_for() -> None:
    from apps import plugged
    from apps.doctor.checks import service
    from apps.doctor.checks.families import FAMILIES
    from devices import BACKENDS, is_virtual

    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [name for name in BACKENDS if f"`{name}`" not in settings] == []
    real = {name for name in BACKENDS if not is_virtual(name)}
    assert {family.backend for family in FAMILIES} | {service.BACKEND} == real == set(plugged._NEEDED)
