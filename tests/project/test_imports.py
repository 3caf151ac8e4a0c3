"""Structure of the packages: no circular imports, also not inside functions; drivers apart from emulators."""

import graphlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PACKAGES = ("haptics", "devices", "calibration", "apps")


def test_every_package_of_a_driver_is_kept_apart_from_emulators():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["name"].startswith("Drivers know nothing of emulators"))
    packages = {f"devices.{file.parent.name}" for file in (ROOT / "devices").glob("*/__init__.py")}
    assert set(contract["source_modules"]) == packages - set(contract["forbidden_modules"])


def test_modules_have_no_circular_imports():
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed")
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    assert len(graph.modules) > 400
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle
