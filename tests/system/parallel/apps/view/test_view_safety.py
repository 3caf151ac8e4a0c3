"""What the window shows of the safety envelope: lamps and energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError, reason="Qt or its system libraries are missing")

from PySide6 import QtGui

from apps.shared.theme import DARK
from apps.view.panels.energy import FALL, lingering
from apps.view.panels.lamps import SAFETY, TIMING
from apps.view.screenshot import grab
from haptics.records import Status
from tests.apps.view import view_rows
from tests.apps.view.driving import frames, publish


def test_lamps_light_go_out_and_remember(live, rows) -> None:
    live.begin()
    flagged = rows[:3000].copy()
    flagged["status"] = 0
    flagged["status"][100] = Status.LIMITED
    lamps = live.window.dashboard.safety.lamps
    lamp = lamps.lamps[Status.LIMITED]
    publish(live.trace, flagged[:200])
    frames(live)
    assert lamps.state(Status.LIMITED) == (True, True)
    assert lamps.state(Status.SLEW) == (False, False)
    lit = lamp.styleSheet()
    publish(live.trace, flagged[200:])
    frames(live)
    assert lamps.state(Status.LIMITED) == (True, False)
    assert lamp.styleSheet() != lit
    assert lamp.toolTip().endswith("clamped: 1 tick of this run")


def test_every_flag_has_one_lamp_with_a_name_and_a_meaning(live) -> None:
    signs = (*SAFETY, *TIMING)
    assert sorted(sign.flag for sign in signs) == sorted(Status)
    assert len({sign.name for sign in signs}) == len({sign.meaning for sign in signs}) == len(signs)
    live.begin()
    for sign in signs:
        lamp = live.window.dashboard.safety.lamps.lamps[sign.flag]
        assert (lamp.text(), lamp.isVisible()) == (sign.name, True)
        assert lamp.toolTip().startswith(sign.meaning)
        assert lamp.width() >= lamp.minimumSizeHint().width()


@pytest.mark.parametrize("flag", list(Status), ids=lambda flag: flag.name)
def test_a_flag_lights_its_lamp_and_no_other(live, rows, flag: Status) -> None:
    live.begin()
    flagged = rows[:50].copy()
    flagged["status"] = int(flag)
    publish(live.trace, flagged)
    frames(live)
    dashboard = live.window.dashboard
    lit = {sign.flag for sign in SAFETY + TIMING if dashboard.safety.lamps.state(sign.flag) == (True, True)}
    assert lit == {flag}


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50), st.floats(0.001, 2.0))
def test_a_peak_lingers_and_falls(values: list[float], later: float) -> None:
    signal = np.array(values)
    times = 1e-3 * np.arange(len(signal))
    shown = lingering(signal, times)
    assert signal[-1] <= shown <= signal.max()
    after = lingering(np.append(signal, 0.0), np.append(times, times[-1] + later))
    assert after == pytest.approx(shown * np.exp(-later / FALL))


def test_no_energy_is_shown_before_there_is_a_tick() -> None:
    assert lingering(np.zeros(0), np.zeros(0)) == 0.0


def test_energy_fills_the_bar_up_to_the_limit(live, rows) -> None:
    live.begin(max_energy=0.02)
    meter = live.window.dashboard.safety.energy
    assert (meter.bar.filled, meter.number.text()) == (0.0, "energy 0.00 of 20\u00a0mJ")
    rising = rows[:2000].copy()
    rising["injected_energy"] = np.linspace(0.0, 8e-3, 2000)
    publish(live.trace, rising[:1000])
    frames(live)
    assert meter.bar.filled == pytest.approx(0.2, rel=0.01)
    publish(live.trace, rising[1000:])
    frames(live)
    assert meter.bar.filled == pytest.approx(0.4, rel=0.01)
    assert meter.number.text() == "energy 8.00 of 20\u00a0mJ"
    rising["injected_energy"] = 0.03
    rising["time"] += 2.0
    publish(live.trace, rising[:100])
    frames(live)
    full = meter.bar.grab().toImage().pixelColor(meter.bar.width() // 2, 5)
    assert (meter.bar.filled, meter.bar.marked) == (1.0, 1.0)
    assert full.name() == live.window.theme.alarm
    assert "30.00 mJ" in meter.bar.toolTip()


def test_a_picture_has_lamps_and_energy(qapp, rows, tmp_path: Path) -> None:

    rows = rows[:2000].copy()
    rows["status"][1500:] |= np.uint32(Status.ENERGY | Status.PASSIVITY)
    rows["injected_energy"] = 0.03
    path = tmp_path / "picture.png"
    grab(rows, view_rows.METADATA, path, "dark")
    picture = QtGui.QImage(str(path)).convertToFormat(QtGui.QImage.Format.Format_RGB32)
    pixels = np.frombuffer(picture.constBits(), np.uint32).reshape(picture.height(), picture.width()) & 0xFFFFFF
    assert np.count_nonzero(pixels[-120:] == int(DARK.alarm[1:], 16)) > 2000
