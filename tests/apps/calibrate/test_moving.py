"""What is said and done around a motion of a calibration, whatever ends it; the motions themselves are elsewhere."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from apps.calibrate.moving import moving, orderly_end
from devices import create_device
from haptics.errors import DeviceFault

SPEC = create_device("virtual-joystick", {}).spec


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DeviceFault("it was unplugged")])
def test_what_ends_early_says_where_its_recording_is(
    error: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "recordings" / "run"
    with pytest.raises(type(error)), moving(SPEC, 1.0, "gently", place):
        place.mkdir()
        assert "let go of the handle" in capsys.readouterr().err
        raise error
    assert f"The recording is in {place}." in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_an_interrupt_meanwhile_and_not_after(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda which, _: heard.append(which))
    try:
        with pytest.raises(KeyboardInterrupt), orderly_end():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)
    assert heard == [number]
