"""The page of all settings says what the declarations say."""

from pathlib import Path

from apps.settings.reference import pages


def test_the_committed_page_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == "\n".join(pages()), (
        "python -m apps.settings.reference > docs/settings.md"
    )


def test_every_setting_has_a_meaning() -> None:
    rows = [line for page in pages() for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    assert [row for row in rows if row.endswith("|  |")] == []
