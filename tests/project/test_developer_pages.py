"""Pages for developers: the files and names in CONTRIBUTING and docs/architecture.md exist.

A name in backquotes must occur in one of the files that its paragraph, list item or table row links or names. A dotted
name such as ``haptics.settings.build`` must be importable. In a block without files, a name must occur in any module.
"""

import io
import pydoc
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("haptics", "devices", "calibration", "apps", "tests")
NOT_OURS = {"conda", "umockdev", "uv", "site/", "recordings/NAME"}
"""Other programs, and folders that the programs create."""

BLOCKS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-|]|\d+\.) ?)")
PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(?:py|pyi|toml|md|yml|txt)")
NAME = re.compile(r"[A-Za-z_][\w.]*")


@cache
def names_in(file):
    """Return the identifiers of a file, and the words of its strings except docstrings."""
    text = file.read_text(encoding="utf-8")
    if file.suffix not in (".py", ".pyi"):
        return set(re.findall(r"\w+", text))
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME or (token.type == tokenize.STRING and not token.string.endswith('"""')):
            found |= set(re.findall(r"\w+", token.string))
    return found


@cache
def words_in_packages():
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py") if file != Path(__file__)]
    return set(re.findall(r"\w+", "\n".join(file.read_text(encoding="utf-8") for file in files)))


def missing_in(page, folder):
    """Return the paths and names of a page that do not exist; links are relative to `folder`."""
    missing = []
    for block in BLOCKS.split(re.sub(r"```.*?```", "", page, flags=re.DOTALL)):
        links = [folder / link for link in re.findall(r"\]\(([^)#:]+)\)", block)]
        quoted = [text for text in re.findall(r"`([^`\s]+)`", block) if text not in NOT_OURS]
        paths = [ROOT / text for text in quoted if PATH.fullmatch(text)]
        missing += [str(path) for path in (*links, *paths) if not path.exists()]
        files = [file for path in (*links, *paths) for file in (path.rglob("*.py") if path.is_dir() else [path])]
        known = set().union(*(names_in(file) for file in files if file.exists() and file.suffix != ".md"))
        for text in quoted:
            name = text.removesuffix("()").removesuffix("=")
            if PATH.fullmatch(text) or not NAME.fullmatch(name):
                continue
            if name.split(".")[0] in PACKAGES and "." in name:
                missing += [name] if pydoc.locate(name) is None else []
            elif not set(name.split(".")) <= (known or words_in_packages()):
                missing.append(f"{name} in {', '.join(file.name for file in files) or 'any module'}")
    return missing


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_and_names_of_a_page_exist(page):
    assert missing_in((ROOT / page).read_text(encoding="utf-8"), (ROOT / page).parent) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("call `pause` of [clock](haptics/clock.py)", []),
        ("call `go_on` of [clock](haptics/clock.py)", ["go_on in clock.py"]),
        ("call `go_on()` of `haptics/clock.py`\n2. in `haptics/errors.py`", ["go_on in clock.py"]),
        ("call `sleep_on`", ["sleep_on in any module"]),
        ("`haptics.settings.build`, `haptics.settings.built`", ["haptics.settings.built"]),
        ("`uv`, `./run check`, `tests/{haptics,apps}`", []),
    ],
)
def test_a_missing_name_is_found(text, missing):
    assert missing_in(text, ROOT) == missing


def test_a_missing_file_is_found():
    assert missing_in("[clock](haptics/clocks.py), `haptics/none.py`", ROOT) == [
        str(ROOT / "haptics" / name) for name in ("clocks.py", "none.py")
    ]
