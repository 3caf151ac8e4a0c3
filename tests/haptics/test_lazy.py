"""Public names: each is there, listed, and loaded when it is first used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("haptics", "calibration")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_the_same_as_in_its_module(package: str) -> None:
    loaded = importlib.import_module(package)
    homes = [(home, name) for home, names in loaded._HOMES.items() for name in names]
    assert sorted(name for _, name in homes) == sorted(loaded.__all__)
    for home, name in homes:
        assert getattr(loaded, name) is getattr(importlib.import_module(f"{package}.{home}"), name)
    assert set(loaded.__all__) <= set(dir(loaded))


@pytest.mark.parametrize("package", PACKAGES)
def test_another_name_is_said(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = importlib.import_module(package).nothing


@pytest.mark.parametrize("package", PACKAGES)
def test_to_import_the_package_costs_nothing(package: str) -> None:
    program = f"import sys, {package}; print(*({{'numba', 'numpy'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
