"""``haptics calibrate device``, from the command to sessions that advise and refuse by what was found."""

from pathlib import Path

import pytest

from tests.apps.calibrate.commands import refuses_to_move


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "--device is missing"),
        (["--device=virtual-arm"], "haptics calibrate servo"),
        (["--device=virtual-joystick", "--rate=1"], "--rate = 1.0"),
        (["--device=virtual-joystick", "--set=autotune.strength=2"], "autotune.strength = 2"),
        (["--device=virtual-joystick", "--set=device.hand.name=mouse"], "nobody may hold"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_moves(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refuses_to_move(capsys, tmp_path, "device", *arguments)
