"""The documentation site builds without warnings, is complete, and loads no external resources."""

import dataclasses
import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import zlib

import pytest

import haptics
from apps.cli import _parser
from devices.joystick.settings import StickSettings
from tests.processes import ROOT

GENERATE = ROOT / "docs" / "generate"
MODULES = ("chapters", "command_line", "docstrings", "hooks", "interface", "links")


@pytest.fixture
def generator(monkeypatch):
    """Make the modules of ``docs/generate`` importable, as MkDocs does."""
    for package in ("mkdocs", "mkdocstrings", "griffe"):
        if not os.environ.get("CI"):
            pytest.importorskip(package, reason="the site is built where the extra 'docs' is installed: ./run setup")
    monkeypatch.syspath_prepend(str(GENERATE))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def build(root, into):
    """Build the site like ``./run docs``; return the exit status and the output."""
    words = runpy.run_path(str(ROOT / "run"))["program"]("docs", [])
    done = subprocess.run(
        [sys.executable, *words, "--site-dir", str(into)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


# --- complete site ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not os.environ.get("CI"):
        pytest.importorskip("mkdocstrings", reason="the site is built where the extra 'docs' is installed: ./run setup")
    into = tmp_path_factory.mktemp("site")
    status, said = build(ROOT, into)
    assert status == 0, said
    return into


def test_every_public_name_has_its_place(site):
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    places = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    assert {f"haptics.{name}" for name in haptics.__all__} <= places
    assert "devices.open_device" in places


def test_every_command_is_in_the_reference(site):
    page = (site / "command_line.html").read_text(encoding="utf-8")
    (commands,) = (action.choices for action in _parser()._actions if action.choices and not action.option_strings)
    for name in commands:
        assert f">haptics {name}<" in page
    assert "--travel-x" in page, "of a command in a command"


def test_reading_it_fetches_nothing(site):
    fetched = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//[^"]+"')
    for page in site.rglob("*.html"):
        found = [tag for tag in fetched.findall(page.read_text(encoding="utf-8")) if 'rel="canonical"' not in tag]
        assert found == [], page


def test_nothing_of_the_generator_is_on_it(site):
    assert not (site / "generate").exists()


# --- errors -----------------------------------------------------------------------------------------------------------


def small_repository(root, text, module):
    """Create a repository with one page and one public name.

    It uses the configuration and the generator of this project.
    """
    shutil.copytree(GENERATE, root / "docs" / "generate", ignore=shutil.ignore_patterns("__pycache__"))
    settings, _, _ = (ROOT / "mkdocs.yml").read_text().partition("nav:\n")
    pages = [
        "README.md",
        "command_line.md",
        "settings.md",
        "overview.md",
        "contributing.md",
        "changelog.md",
        "interface/",
    ]
    (root / "mkdocs.yml").write_text(settings + "nav:\n" + "".join(f"  - {page}: {page}\n" for page in pages))
    (root / "docs" / "settings.md").write_text("# Settings\n")
    (root / "docs" / "README.md").write_text(f"# Home\n\n[commands](command_line.md)\n{text}")
    for package in ("haptics", "devices", "calibration", "apps"):
        (root / package).mkdir()
        (root / package / "__init__.py").write_text('"""A package."""\n')
    (root / "haptics" / "__init__.py").write_text(module)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (root / name).write_text("# Text\n")


GOOD = '"""The package."""\n__all__ = ["good"]\n\n\ndef good():\n    """Do it."""\n'
BAD = GOOD.replace('["good"]', '["good", "bad", "absent"]') + "\n\ndef bad():\n    pass\n"


@pytest.mark.usefixtures("generator")
def test_a_small_site_is_built(tmp_path):
    small_repository(tmp_path, "[the log](../CHANGELOG.md) and `haptics.good`\n", GOOD)
    status, said = build(tmp_path, tmp_path / "site")
    assert status == 0, said
    page = (tmp_path / "site" / "index.html").read_text()
    assert 'href="changelog.html"' in page
    assert 'href="interface/haptics.html#haptics.good"' in page


@pytest.mark.usefixtures("generator")
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


@pytest.fixture
def links(generator):
    return importlib.import_module("links")


@pytest.mark.parametrize(
    ("link", "origin", "page", "becomes"),
    [
        ("safety.md#motions", "docs/README.md", "README.md", "safety.md#motions"),
        ("docs/safety.md#motions", "README.md", "overview.md", "safety.md#motions"),
        ("../CONTRIBUTING.md#style", "docs/README.md", "README.md", "contributing.md#style"),
        ("../../CONTRIBUTING.md", "docs/tutorials/own_law.md", "tutorials/own_law.md", "../contributing.md"),
        ("../run", "docs/safety.md", "safety.md", "source/run.md"),
        ("examples", "README.md", "overview.md", "source/examples/index.md"),
        ("docs/generate/links.py", "CONTRIBUTING.md", "contributing.md", "source/docs/generate/links.py.md"),
        ("https://example.org/a.py", "README.md", "overview.md", "https://example.org/a.py"),
        ("../no_such_file.py", "docs/safety.md", "safety.md", "../no_such_file.py"),
    ],
)
def test_where_a_link_leads_on_the_site(links, link, origin, page, becomes):
    assert links.rewritten(f"[a]({link})", origin, page) == f"[a]({becomes})"
    assert links.rewritten(f"```\n[a]({link})\n```", origin, page) == f"```\n[a]({link})\n```"


def test_names_become_links_to_where_they_are(links):
    places = {"haptics.Law": "interface/haptics.md#haptics.Law"}
    said = links.with_names(
        "`haptics.Law`, `haptics.friction.laws` [`haptics.Law`](x.md)\n", places, "tutorials/own_law.md"
    )
    assert said == (
        "[`haptics.Law`](../interface/haptics.md#haptics.Law), `haptics.friction.laws` [`haptics.Law`](x.md)\n"
    )


DOCSTRING = """What it is::

    [table]
    key = 1

======  =============
name    meaning
======  =============
``a``   the first of
        two
b       the second
======  =============

See :math:`a \\ge b` and ``c``.
"""
MARKDOWN = """What it is:

```text
[table]
key = 1
```

| name | meaning |
| --- | --- |
| `a` | the first of two |
| b | the second |

See `a ≥ b` and `c`.
"""


@pytest.mark.usefixtures("generator")
def test_docstrings_become_markdown():
    assert importlib.import_module("docstrings").as_markdown(DOCSTRING) == MARKDOWN


@pytest.mark.usefixtures("generator")
def test_settings_are_documented_by_their_declarations():
    griffe = importlib.import_module("griffe")
    extension = griffe.load_extensions(importlib.import_module("docstrings").Markdown)
    settings = griffe.load("devices.joystick.settings", search_paths=[ROOT], extensions=extension)["StickSettings"]
    attributes = next(part for part in settings.docstring.parse("numpy") if part.kind.value == "attributes")
    found = {attribute.name: attribute.description for attribute in attributes.value}
    assert found["velocity_window"].startswith("Periods the velocity is averaged over (difference). Allowed: a whole")
    assert found["keep_alive"].startswith("How often a force is restarted, how long a command counts [s].")
    assert {field.name for field in dataclasses.fields(StickSettings)} == set(found)  # including inherited fields
