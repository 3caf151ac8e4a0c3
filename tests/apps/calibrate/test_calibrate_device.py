"""``haptics calibrate friction --device``, from the command to a session that makes up for what was found."""

from pathlib import Path

import pytest

from apps.cli import main
from tests.apps.calibrate.commands import refuses_to_move


def calibrate(*arguments: str) -> int:
    return main(["calibrate", "friction", *arguments])


def test_a_place_where_nothing_can_be_recorded_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "recordings"
    assert calibrate("--device=virtual-joystick", f"--out={tmp_path / 'own.toml'}", f"--record={place}") == 2
    assert "no recording can be made there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--device=stove"], "unknown device 'stove'"),
        (["--device=virtual-joystick", "--set=device.hand.name=mouse"], "nobody may hold a device"),
        (["--device=virtual-joystick", "--set=device.friction_parameters=a.toml"], "name it with --out"),
        (["--device=virtual-joystick", "--set=device.name=pantograph"], "--device says"),
        (["--device=virtual-joystick", "--set=excitation.speed=1"], "unknown setting 'excitation.speed'"),
        (["--device=virtual-joystick", "--set=law.force=1"], "unknown table of settings 'law'"),
        (["--device=virtual-arm", "--set=excitation.rounds=1"], "excitation.rounds = 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refuses_to_move(capsys, tmp_path, "friction", *arguments)
