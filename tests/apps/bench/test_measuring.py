"""Measuring instruments of the benchmarks: slices, wake-up lateness, cyclictest, memory of a process."""

from __future__ import annotations

import gc
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.bench import cyclictest, workload
from apps.bench.outcome import CannotMeasure
from apps.bench.servo import SETTLING, figures, ratios, whole_lateness
from apps.bench.soak import Watch, resident_memory
from haptics.clock import Clock
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from haptics.servo.servo import Servo
from haptics.trace import Trace
from tests.haptics.doubles import BenchDevice

PERIOD = 1e-3
SETTLED = round(SETTLING / PERIOD)
HEADER = "\nMax CPUs = 2\nOnline CPUs = 2\n# /dev/cpu_dma_latency set to 0us\nThread 0 Interval: 1500\n"
WAKE_UPS = st.lists(st.integers(-1000, 10**9), min_size=1, max_size=50)

# --- slices ----------------------------------------------------------------------------------------------------------


def test_slices_alternate_between_candidates_and_are_timed_separately(monkeypatch):
    now = 0
    monkeypatch.setattr(workload.time, "thread_time_ns", lambda: now)
    log: list[str] = []

    def candidate(durations, name):
        def run():
            nonlocal now
            log.append(name)
            now += next(durations)

        return run

    times = workload.measure(
        [candidate(iter(range(100, 200)), "first"), candidate(iter(range(1000, 1100)), "second")], rounds=4
    )
    assert log == ["first", "second"] * (len(log) // 2)
    warm_up = len(log) // 2 - 4
    assert warm_up > 0
    expected = np.array([[100 + warm_up + k, 1000 + warm_up + k] for k in range(4)]) * 1e-9
    np.testing.assert_allclose(times, expected, rtol=1e-12)


@pytest.mark.parametrize("collecting", [True, False])
def test_garbage_collection_is_off_during_a_slice_and_restored_afterwards(collecting):
    seen: list[bool] = []
    (gc.enable if collecting else gc.disable)()
    try:
        workload.measure([lambda: seen.append(gc.isenabled())], rounds=2)
        with pytest.raises(ZeroDivisionError):
            workload.measure([lambda: 1 // 0], rounds=2)
        assert gc.isenabled() == collecting
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


def test_slice_ratio_is_a_median_over_rounds_with_its_interquartile_range():
    references = np.array([1.0, 2.0, 4.0, 1.0, 2.0])  # the processor changes its frequency between the rounds
    ratio = workload.compare(references * [1.5, 1.4, 1.6, 9.0, 1.5], references)
    assert ratio == pytest.approx({"ratio": 1.5, "spread": 0.1})
    assert workload.nanoseconds(np.array([1e-3, 3e-3, 2e-3]), 1000) == pytest.approx(2000.0)


# --- lateness --------------------------------------------------------------------------------------------------------


class StallingClock(Clock):
    """Clock whose waits end late by given delays."""

    def __init__(self, delays):
        super().__init__(PERIOD)
        self.delays = delays
        self.waited: list[tuple[int, float]] = []

    def wait(self, tick):
        super().wait(tick)
        delay = self.delays.get(len(self.waited), 0.0)
        self.waited.append((tick, delay))
        return delay


@settings(max_examples=5)
@given(
    st.dictionaries(
        st.integers(0, SETTLED + 80), st.floats(0.0, 20 * PERIOD).filter(lambda d: 1e-6 < d % PERIOD < PERIOD - 1e-6)
    )
)
def test_lateness_includes_the_whole_stall_although_the_servo_skips_ticks(tmp_path_factory, delays):
    clock = StallingClock(delays)
    trace = Trace.create(tmp_path_factory.mktemp("trace") / "ring", capacity=512)
    element = MasslessImpedance(Coulomb(2.0), 6000.0, 10.0, PERIOD)
    Servo(BenchDevice(clock), element, trace, clock=clock).run(0.4)
    rows = trace.since(0)
    expected = [delay for tick, delay in clock.waited[: len(rows)] if tick >= SETTLED]
    np.testing.assert_allclose(whole_lateness(rows, PERIOD), expected, atol=1e-12)


def test_lateness_figures_are_microseconds_and_the_share_a_fraction():
    found = figures(np.array([0.0] * 97 + [1e-5, 2e-3, 3e-3]))
    assert found["p50"] == 0.0 and found["max"] == pytest.approx(3000.0)
    assert found["late_share"] == pytest.approx(0.02)


@given(st.integers(1, 1000), st.integers(0, 50))
def test_lateness_reference_without_late_wake_ups_counts_as_having_one(count, late):
    late = min(late, count)
    own = figures(np.array([2e-3] * late + [0.0] * (count - late)))
    found = ratios(own, figures(np.zeros(count)), count)
    assert found["ratio_late_share"] == pytest.approx(max(late, 1))
    assert all(math.isfinite(value) for value in found.values())
    if not late:
        assert set(found.values()) == {1.0}


@given(st.lists(st.floats(1e-7, 1e-2), min_size=1, max_size=200), st.floats(0.5, 20.0))
def test_lateness_ratio_is_the_factor_between_both(lateness, factor):
    own, reference = figures(np.array(lateness) * factor), figures(np.array(lateness))
    found = ratios(own, reference, len(lateness))
    for name in ("ratio_p50", "ratio_p99", "ratio_p999"):
        assert found[name] == pytest.approx(factor, rel=0.05)  # figures of 0.1 us have steps of 1 %


# --- cyclictest ------------------------------------------------------------------------------------------------------


@given(WAKE_UPS, st.data())
def test_cyclictest_output_is_read_in_seconds_and_must_be_complete(nanoseconds, data):
    lines = [f"{0:8d}:{number:8d}:{value:8d}" for number, value in enumerate(nanoseconds)]
    found = cyclictest.lateness(HEADER + "\n".join(lines) + "\n", len(nanoseconds))
    np.testing.assert_allclose(found, np.array(nanoseconds) * 1e-9, rtol=1e-12)
    place = data.draw(st.integers(0, len(lines) - 1))
    for changed in (lines[:place] + lines[place + 1 :], [*lines[: place + 1], *lines[place:]]):
        with pytest.raises(CannotMeasure, match="run the benchmark again"):
            cyclictest.lateness("\n".join(changed), len(nanoseconds))


@given(rate=st.integers(100, 4000), priority=st.integers(0, 98), cpu=st.integers(-1, 7))
def test_cyclictest_runs_under_the_same_conditions_as_the_servo(rate, priority, cpu):
    words = cyclictest.command(1.0 / rate, 500, priority, cpu)
    first = words.index(cyclictest.NAME)
    assert words[:first] == ([] if priority else ["nice", "-n", "-10"])
    options = dict(part.removeprefix("--").partition("=")[::2] for part in words[first + 1 :])
    assert abs(int(options["interval"]) - 1e6 / rate) <= 0.5
    assert options["loops"] == "500" and "mlockall" in options
    assert options["policy"] == ("fifo" if priority else "other")
    assert options.get("priority", "0") == str(priority)
    assert options.get("affinity", "-1") == str(cpu)


def test_missing_or_failing_cyclictest_is_reported(tmp_path, monkeypatch):
    arguments = [sys.executable, "-c", "import sys; sys.exit('Unable to change scheduling policy!')"]
    with pytest.raises(CannotMeasure, match="Unable to change scheduling policy!"):
        cyclictest.measure(arguments, tmp_path / "out", 1.0, lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotMeasure, match="apt-get install rt-tests"):
        cyclictest.require()


def test_cyclictest_ends_at_once_on_an_interrupt(tmp_path):
    output = tmp_path / "out"
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"

    def interrupt():
        if output.read_text():
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        cyclictest.measure([sys.executable, "-c", sleeper], output, 100.0, interrupt)
    assert time.monotonic() - start < 50.0
    assert not Path(f"/proc/{output.read_text().strip()}").exists()


def test_hanging_cyclictest_is_terminated(tmp_path, monkeypatch):
    monkeypatch.setattr(cyclictest, "_PATIENCE", 0.0)
    sleeper = [sys.executable, "-c", "import time; time.sleep(100)"]
    with pytest.raises(CannotMeasure, match="did not end within"):
        cyclictest.measure(sleeper, tmp_path / "out", 0.3, lambda: None)


@pytest.mark.skipif(not shutil.which(cyclictest.NAME), reason="needs cyclictest (Debian package rt-tests)")
def test_installed_cyclictest_reports_the_requested_number_of_wake_ups(tmp_path):
    try:
        cyclictest.measure(cyclictest.command(1e-3, 200, 0, -1), tmp_path / "out", 0.2, lambda: None)
    except CannotMeasure as error:
        assert re.search("scheduling policy|mlockall", str(error))
        pytest.skip(f"cyclictest may not run here: {error}")
    lateness = cyclictest.lateness((tmp_path / "out").read_text(), 200)
    assert 0.0 < np.median(lateness) < 0.1


# --- memory ----------------------------------------------------------------------------------------------------------


def watched(size, duration, step):
    """Watch a process whose memory is a function of time [s]."""
    now = 0.0
    watch = Watch(1, duration, memory=lambda _: size(now))
    while now < duration:
        watch.at(now)
        now += step
    return watch


@given(st.integers(-50, 50), st.floats(200.0, 4000.0))
def test_steadily_growing_memory_has_its_slope_and_growth(kib_per_s, duration):
    watch = watched(lambda now: round((10**6 + kib_per_s * now) * 1024), duration, 1.0)
    found = watch.as_dict()
    assert found["slope_kib_per_min"] == pytest.approx(60 * kib_per_s, abs=1e-3)
    seen = found["last_kib"] - found["first_kib"]
    assert watch.growth == pytest.approx(seen, abs=1.0)
    assert abs(seen) >= abs(kib_per_s) * (duration - 30.0 - 12.0)


def test_memory_of_the_warm_up_and_of_an_ended_process_does_not_count():
    assert watched(lambda now: 5_000_000 if now < 15.0 else 9_000_000, 100.0, 0.5).growth == 0.0
    ended = watched(lambda now: None, 10.0, 1.0)
    assert ended.growth is None and ended.as_dict() == {"samples": 0}


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system has no /proc")
def test_resident_memory_counts_the_touched_pages_of_a_process():
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
