"""Docstrings: the parameters, attributes and types in their sections exist."""

import ast
import builtins
import itertools
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("haptics", "devices", "calibration", "apps")

SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)(?: : (.*))?$", re.MULTILINE)


@cache
def trees():
    files = itertools.chain.from_iterable(sorted((ROOT / package).rglob("*.py")) for package in PACKAGES)
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}


@cache
def known():
    """Return the classes by name, and the names of all classes, imports, variables and attributes."""
    classes, names = defaultdict(list), {*dir(builtins), "Generator"}
    for node in itertools.chain.from_iterable(map(ast.walk, trees().values())):
        if isinstance(node, ast.ClassDef):
            classes[node.name].append(node)
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return classes, names


def names_of(definition, seen=()):
    """Return the arguments of a function, or the members of a class and its bases."""
    if isinstance(definition, ast.FunctionDef):
        return {node.arg for node in ast.walk(definition.args) if isinstance(node, ast.arg)}
    found = {keyword.arg for keyword in definition.keywords}
    for node in ast.walk(definition):
        match node:
            case ast.FunctionDef(name=name) | ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
    for base in re.findall(r"\w+", " ".join(map(ast.unparse, definition.bases))):
        for parent in known()[0][base] if base not in seen else ():
            found |= names_of(parent, (*seen, base))
    return found


def missing_in(definition):
    """Return the names and types in the sections of a docstring that do not exist."""
    text = ast.get_docstring(definition) or ""
    entries = [entry for section in SECTION.findall(text) for entry in ENTRY.findall(section)]
    if not entries:
        return []
    passed_on = any(isinstance(node, ast.arguments) and node.kwarg for node in ast.walk(definition))
    members, missing = None if passed_on else names_of(definition), []
    for names, kind in entries:
        missing += [name for name in re.findall(r"\w+", names) if members is not None and name not in members]
        missing += [name for name in re.findall(r"(?<![\w.])[A-Z][a-z]\w+\b", kind) if name not in known()[1]]
    return missing


@pytest.mark.parametrize("package", PACKAGES)
def test_documented_parameters_attributes_and_types_exist(package):
    missing = {
        f"{file.relative_to(ROOT)}: {node.name}": names
        for file, tree in trees().items()
        if file.is_relative_to(ROOT / package)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (names := missing_in(node))
    }
    assert missing == {}


def test_stale_names_are_found():
    source = '"""Do it.\n\nParameters\n----------\nport : Port\n    x\ntake : Lanes\n    y\n"""'
    (function,) = ast.parse(f"def run(port):\n    {source}").body
    assert missing_in(function) == ["take", "Lanes"]
