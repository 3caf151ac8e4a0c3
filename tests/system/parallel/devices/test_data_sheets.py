"""Long computations for the topic of tests/devices/test_data_sheets.py."""

from __future__ import annotations

import re

from tests.devices.data_sheets import STIFFEST, main


def test_the_table_is_made() -> None:
    lines: list[str] = []
    main(["virtual-joystick"], lines.append)
    assert lines[0].startswith("| device |")
    assert re.fullmatch(r"\n\d+ processors; load average [\d.]+ when it began, [\d.]+ when it ended\.\n", lines.pop())
    told = {line.split(" | ")[1]: line.rstrip(" |\n").split(" | ")[-1] for line in lines[1:]}
    figures = "position resolution", "delay", "least friction", "largest force", "largest speed", STIFFEST
    assert told.keys() == set(figures)
    assert told.pop("delay") == "not seen from here"  # a run without a clock takes no time
    assert all(value[0].isdigit() or value.startswith("-") for value in told.values())
