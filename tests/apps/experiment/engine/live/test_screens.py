"""Who serves the screens of a session: what is written down when one of them is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.experiment.design import read_design
from apps.experiment.engine.live.screens import Screens
from haptics.errors import DeviceFault
from tests.apps.experiment.design.designs import changed
from tests.apps.experiment.screens.test_audience import begin


class Written:
    """A sitting that keeps the events it is given."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def event(self, name: str, **fields: Any) -> None:
        self.events.append(name)


def test_a_screen_that_is_gone_is_written_down_once_however_long_the_servo_takes_to_end(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path))
    audience, participant, _, _ = begin(design)
    screens = Screens(design, audience, participant, None)
    screens.sitting = written = Written()  # type: ignore[assignment]
    screens.attend()
    participant.open = False
    for _ in range(3):
        with pytest.raises(DeviceFault, match="nothing that was answered is lost"):
            screens.attend()
    assert written.events == ["screen-lost"]
