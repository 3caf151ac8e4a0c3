from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.bench.live.memory import Watch, resident_memory

KIB = 1024


@given(st.integers(-50, 50), st.floats(200.0, 4000.0))
def test_memory_that_grows_steadily_has_that_slope_and_growth(kib_per_s: int, duration: float) -> None:
    now = 0.0
    watch = Watch(1, duration, look=lambda _: round((10**6 + kib_per_s * now) * KIB))
    while now < duration:
        watch.at(now)
        now += 1.0
    found = watch.as_dict()
    assert found["slope_kib_per_min"] == pytest.approx(60 * kib_per_s, abs=1e-3)
    seen = found["last_kib"] - found["first_kib"]
    assert watch.growth == pytest.approx(seen, abs=1.0)
    assert abs(seen) >= abs(kib_per_s) * (duration - 30.0 - 12.0)


def test_what_happens_during_the_warm_up_does_not_count() -> None:
    sizes = {True: 5_000_000, False: 9_000_000}
    now = 0.0
    watch = Watch(1, 100.0, look=lambda _: sizes[now < 15.0])
    while now < 100.0:
        watch.at(now)
        now += 0.5
    assert watch.growth == 0.0


def test_a_process_that_is_gone_has_no_growth() -> None:
    watch = Watch(1, 10.0, look=lambda _: None)
    watch.at(9.0)
    assert watch.growth is None and watch.as_dict() == {"samples": 0}


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system has no /proc")
def test_the_memory_of_a_process_is_what_it_has_touched() -> None:
    code = "import sys; x = bytearray(int(sys.argv[1])); print(flush=True); sys.stdin.read()"
    sizes = []
    for size in (1, 50_000_000):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            sizes.append(resident_memory(process.pid) or 0)
            process.communicate(b"")
    assert sizes[1] - sizes[0] == pytest.approx(50_000_000, rel=0.2)
