"""Structure of the packages: no module imports itself through others, also not inside functions."""

import graphlib

import pytest

PACKAGES = ("haptics", "devices", "calibration", "apps")


def test_modules_have_no_circular_imports():
    grimp = pytest.importorskip("grimp", reason="import-linter is not installed")
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    assert len(graph.modules) > 400
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle
