"""What the page says of a blocked arm is what comes out."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from apps.reproduce.blockage import MODELS, RULES, SERVOS, Freed, blockage, line

PAGE = Path(__file__).parents[3] / "docs" / "arm.md"


@functools.cache
def freed(model: str, name: str, rule: str) -> Freed:
    return blockage(model, SERVOS[name], **RULES[rule])


def numbers(text: str) -> list[float]:
    """Return the numbers of a line of the table, without its first three columns."""
    return [float(number) for number in re.findall(r"-?[0-9.]+", text.strip("|").split("|", 3)[3])]


@pytest.mark.parametrize("name", SERVOS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", MODELS)
def test_line_is_as_the_page_says(model: str, rule: str, name: str) -> None:
    begin = re.escape(f"| {model} | {name} | {rule} |")
    stated = re.search(f"^{begin}.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert stated is not None
    assert numbers(line(model, name, rule, freed(model, name, rule))) == pytest.approx(
        numbers(stated[0]), rel=0.05, abs=0.5
    )


def test_an_arm_that_nothing_blocks_does_not_jump() -> None:
    """It slides as far as the hand pushes it, and is at rest when that lets go: the speed is that of the model."""
    result = blockage("A", {"law": "pid"}, blocked_for=0.0)
    assert result.force == 0.0
    assert result.jump < 1e-3
    assert result.ahead < 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_the_rule_bounds_the_jump_and_ends_the_run(model: str) -> None:
    without, with_rule = freed(model, "PID", "off"), freed(model, "PID", "on")
    assert without.message == ""
    assert "it does not follow" in with_rule.message
    assert 0.1 < with_rule.ended < 0.4
    assert with_rule.ahead < 0.1 * without.ahead
    assert with_rule.jump < 0.1 * without.jump
    assert with_rule.speed < 0.5 * without.speed
