"""The documentation site builds without warnings, is complete, and loads no external resources."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import zlib

import pytest

import haptics
from apps.cli import make_parser
from tests.made_once import made_once
from tests.processes import ROOT

GENERATE = ROOT / "docs" / "generate"


@pytest.fixture(scope="module", autouse=True)
def packages():
    for package in ("mkdocs", "mkdocstrings", "griffe"):
        if not os.environ.get("CI"):
            pytest.importorskip(package, reason="the site is built where the extra 'docs' is installed: ./run setup")


def build(root, into):
    """Build the site like ``./run docs``; return the exit status and the output."""
    words = runpy.run_path(str(ROOT / "run"))["program"]("docs", [])
    done = subprocess.run(
        [sys.executable, *words, "--site-dir", str(into)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


# --- complete site ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    def make(folder):
        status, said = build(ROOT, folder)
        assert status == 0, said

    return made_once(tmp_path_factory, "site", make)


def test_every_public_name_has_its_place(site):
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    places = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    assert {f"haptics.{name}" for name in haptics.__all__} <= places
    assert "devices.open_device" in places


def test_every_command_is_in_the_reference(site):
    page = (site / "command_line.html").read_text(encoding="utf-8")
    (commands,) = (action.choices for action in make_parser()._actions if action.choices and not action.option_strings)
    for name in commands:
        assert f">haptics {name}<" in page
    assert "--travel-x" in page, "of a command in a command"


def test_reading_it_fetches_nothing(site):
    fetched = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]+"')
    for page in site.rglob("*.html"):
        found = [tag for tag in fetched.findall(page.read_text(encoding="utf-8")) if 'rel="canonical"' not in tag]
        assert found == [], page
    assert not (site / "generate").exists(), "nothing of the generator is on it"


# --- errors -----------------------------------------------------------------------------------------------------------


def small_repository(root, text, module):
    """Create a repository with one page and one public name.

    It uses the configuration and the generator of this project.
    """
    shutil.copytree(GENERATE, root / "docs" / "generate", ignore=shutil.ignore_patterns("__pycache__"))
    settings, _, _ = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")
    pages = [f"{name}.md" for name in "README command_line settings overview contributing changelog".split()]
    nav = "".join(f"  - {page}: {page}\n" for page in [*pages, "interface/"])
    (root / "mkdocs.yml").write_text(f"{settings}nav:\n{nav}")
    (root / "docs" / "settings.md").write_text("# Settings\n")
    (root / "docs" / "README.md").write_text(f"# Home\n\n[commands](command_line.md)\n{text}")
    for package in ("haptics", "devices", "calibration", "apps"):
        (root / package).mkdir()
        (root / package / "__init__.py").write_text('"""A package."""\n')
    (root / "haptics" / "__init__.py").write_text(module)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (root / name).write_text("# Text\n")


GOOD = '''"""The package."""
__all__ = ["good"]


def good():
    """Do it."""
'''
BAD = GOOD.replace('["good"]', '["good", "bad", "absent"]') + "\n\ndef bad():\n    pass\n"


def test_broken_links_and_undocumented_names_are_errors(tmp_path):
    small_repository(tmp_path, "[a](nowhere.md) [b](command_line.md#no-such-place) [c](../nowhere.py)\n", BAD)
    (tmp_path / "docs" / "forgotten.md").write_text("# In no chapter\n")
    status, said = build(tmp_path, tmp_path / "site")
    assert status == 1
    for words in (
        "haptics.absent is public and has no docstring: it is nowhere",
        "haptics.bad is public and has no docstring",
        "nowhere.md",
        "no-such-place",
        "nowhere.py",
        "forgotten.md",
    ):
        assert words in said, said
    assert "haptics.good" not in said


# --- parts of the generator -------------------------------------------------------------------------------------------
