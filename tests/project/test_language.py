"""Language of docstrings, comments and pages: standard English without the idioms that the project once had."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_PER_1000_WORDS = 1.5
"""Maximum number of idioms per 1000 words of a folder; well-kept scientific packages have 0.3 to 1.5."""

IDIOMS = re.compile(
    "|".join(
        (
            r"\b(return|say|tell|know|see|of|is|for|by|in|from|with|on|about) what\b",  # noun clauses
            r"\bthat of\b|\bthose of\b",
            r"\b(nobody|somebody|whoever|whose turn|no one knows)\b",
            r"\b(let|lets|letting) go\b|\btake(s|n)? (note|for known)\b",
            r"\b(asks?|asked|tells?|told|hears?|heard|knows) (it|for|of|the (device|drive|stick|servo|kernel))\b",
            r"\bgo(es)? (on|by) (with|as)\b|\bbegins? anew\b|\bonce more\b|\bever since\b",
            r"\b(of its own|on its own account|as it is|as they are|so much as)\b",
            r"\bhow[- ]?man(y|ieth)\b of\b|\bas good as\b|\bby and by\b",
        )
    ),
    re.IGNORECASE,
)


def prose_of_python(path):
    """Return the docstrings and comments of a Python file."""
    text = path.read_text(encoding="utf-8")
    docstrings = re.findall(r'"""(.*?)"""', text, re.DOTALL)
    comments = re.findall(r"(?:^|\s)#:? (?!---|noqa|type:)(.*)", text)
    return "\n".join([*docstrings, *comments])


def prose_of_page(path):
    """Return a page without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


FOLDERS = ["haptics", "devices", "calibration", "apps", "tests"]
PAGES = ["README.md", "CONTRIBUTING.md", "docs"]


@pytest.mark.parametrize("name", [*FOLDERS, *PAGES])
def test_prose_has_few_idioms(name):
    place = ROOT / name
    if name in FOLDERS:
        texts = {path: prose_of_python(path) for path in place.rglob("*.py")}
    else:
        texts = {path: prose_of_page(path) for path in ([place] if place.is_file() else place.rglob("*.md"))}
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)!r}"
        for path, text in texts.items()
        for match in IDIOMS.finditer(text)
    ]
    words = sum(len(text.split()) for text in texts.values())
    assert len(found) <= MAX_PER_1000_WORDS * words / 1000, "\n".join(found)


def test_idioms_are_found():
    assert IDIOMS.search("Return what the drive is asked for.")
    assert not IDIOMS.search("Return the torque [N m] that the drive applies.")
