from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.bench.live import cyclictest
from apps.bench.outcome import CannotMeasure

HEADER = "\nMax CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1500\n"

wake_ups = st.lists(st.integers(-1000, 10**9), min_size=1, max_size=50)


def printed(nanoseconds: list[int]) -> list[str]:
    return [f"{0:8d}:{number:8d}:{value:8d}" for number, value in enumerate(nanoseconds)]


@given(wake_ups)
def test_every_wake_up_is_read_in_seconds(nanoseconds: list[int]) -> None:
    text = HEADER + "\n".join(printed(nanoseconds)) + "\n"
    found = cyclictest.lateness(text, len(nanoseconds))
    np.testing.assert_allclose(found, np.array(nanoseconds) * 1e-9, rtol=1e-12)


@given(wake_ups, st.data())
def test_a_wake_up_that_is_missing_or_told_twice_is_noticed(nanoseconds: list[int], data: st.DataObject) -> None:
    lines = printed(nanoseconds)
    place = data.draw(st.integers(0, len(lines) - 1))
    for changed in (lines[:place] + lines[place + 1 :], [*lines[: place + 1], *lines[place:]]):
        with pytest.raises(CannotMeasure, match="run the benchmark again"):
            cyclictest.lateness("\n".join(changed), len(nanoseconds))


@given(rate=st.integers(100, 4000), priority=st.integers(0, 98), cpu=st.integers(-1, 7))
def test_the_command_asks_for_the_same_as_the_servo_has(rate: int, priority: int, cpu: int) -> None:
    words = cyclictest.command(1.0 / rate, 500, priority, cpu)
    first = words.index(cyclictest.NAME)
    assert words[:first] == ([] if priority else ["nice", "-n", "-10"])
    options = dict(part.removeprefix("--").partition("=")[::2] for part in words[first + 1 :])
    assert abs(int(options["interval"]) - 1e6 / rate) <= 0.5
    assert options["loops"] == "500" and "mlockall" in options
    assert options["policy"] == ("fifo" if priority else "other")
    assert options.get("priority", "0") == str(priority)
    assert options.get("affinity", "-1") == str(cpu)


def test_where_it_is_not_installed_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotMeasure, match="apt-get install rt-tests"):
        cyclictest.require()


def test_what_it_complains_about_is_passed_on(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", "import sys; sys.exit('Unable to change scheduling policy!')"]
    with pytest.raises(CannotMeasure, match="Unable to change scheduling policy!"):
        cyclictest.measure(arguments, tmp_path / "out", 1.0, lambda: None)


def test_a_wish_for_the_end_ends_it_at_once(tmp_path: Path) -> None:
    output = tmp_path / "out"
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"

    def interrupt() -> None:
        if output.read_text():
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cyclictest.measure([sys.executable, "-c", sleeper], output, 100.0, interrupt)
    assert time.monotonic() - start < 50.0
    assert not Path(f"/proc/{output.read_text().strip()}").exists()


def test_one_that_does_not_come_to_an_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cyclictest, "_PATIENCE", 0.0)
    sleeper = [sys.executable, "-c", "import time; time.sleep(100)"]
    with pytest.raises(CannotMeasure, match="did not end within"):
        cyclictest.measure(sleeper, tmp_path / "out", 0.3, lambda: None)


@pytest.mark.skipif(not shutil.which(cyclictest.NAME), reason="needs cyclictest (Debian package rt-tests)")
def test_the_real_one_tells_as_many_wake_ups_as_were_asked_for(tmp_path: Path) -> None:
    try:
        cyclictest.measure(cyclictest.command(1e-3, 200, 0, -1), tmp_path / "out", 0.2, lambda: None)
    except CannotMeasure as error:
        assert re.search("scheduling policy|mlockall", str(error))
        pytest.skip(f"cyclictest may not run here: {error}")
    lateness = cyclictest.lateness((tmp_path / "out").read_text(), 200)
    assert 0.0 < np.median(lateness) < 0.1
