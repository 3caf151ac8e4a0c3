"""Lazy import of the public names of a package, which its stub file ``__init__.pyi`` lists."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def public_names(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package that imports its public names on first use.

    Parameters
    ----------
    package, file : str
        Name and file of the package. The imports in the stub file beside it are the public names.
    """
    imports = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
    home_of = {alias.name: node.module for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(str(home_of[name])), name)

    return sorted(home_of), get, lambda: sorted({*vars(sys.modules[package]), *home_of})
