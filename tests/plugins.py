"""Test packages with devices and laws, discovered like installed packages."""

from __future__ import annotations

import sys

import pytest

import devices
from haptics.plugins import find_plugins


def forget():
    """Clear the caches of installed packages."""
    find_plugins.cache_clear()
    devices._registry.cache_clear()


def write_package(folder, name, version, entries, **modules):
    """Write an installed package into a folder: its metadata, its entry points, its modules.

    `entries` maps ``GROUP NAME`` to ``module:object``.
    """
    description = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups: dict[str, list[str]] = {}
    for entry, place in entries.items():
        group, _, own = entry.partition(" ")
        groups.setdefault(group, []).append(f"{own} = {place}")
    lines = [f"[{group}]\n" + "\n".join(own) + "\n" for group, own in groups.items()]
    (description / "entry_points.txt").write_text("\n".join(lines))
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


@pytest.fixture
def install(tmp_path, monkeypatch, request):
    """Return a function that installs a package for one test; see `write_package`."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    request.addfinalizer(forget)

    def clean():
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]

    request.addfinalizer(clean)

    def put(name, version, entries, **modules):
        write_package(folder, name, version, entries, **modules)
        forget()

    return put
