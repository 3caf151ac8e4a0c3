"""Programs in a recording: exact replay of motions, also where a run changes its program, and tables that are whole."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from haptics.clock import Clock
from haptics.device import Causality, State
from haptics.elements.tables import make_element
from haptics.errors import RecordingError
from haptics.recording.recorder import Recorder
from haptics.recording.recording import Recording
from haptics.recording.replay import verify
from haptics.records import Status
from haptics.rendering.envelope import Limits
from haptics.rendering.motion import Motion, holding, reference
from haptics.rendering.programs import keep_motion, parameters_of, read_program, table_name
from haptics.rendering.rendering import Rendering
from haptics.servo.servo import Servo
from haptics.trace import Reader, Trace
from tests.haptics.changing import ELEMENTS
from tests.haptics.doubles import BenchDevice

LAW = {"name": "coulomb", "force": 4.0}
OF = {"C": Causality.IMPEDANCE, "A": Causality.ADMITTANCE}


def motions(causality: Causality) -> list[Motion]:
    """Two motions that the circling device follows for a while, badly, and lets go of."""
    angle = 5e-3 * np.arange(900)
    circle = 0.03 * np.column_stack((np.cos(angle), np.sin(angle)))
    bound = 4.0 if causality is Causality.IMPEDANCE else 0.3
    first = Motion(causality, reference(circle), bound, max_error=0.2, label="circle")
    if causality is Causality.IMPEDANCE:
        first = replace(first, stiffness=100.0, damping=2.0, integration=400.0)
    return [first, replace(first, table=holding(0.2), relative=True, max_speed=0.5)]


def record(folder: Path, trace: Trace, model: str, order: str, every: int = 300) -> Recording:
    """Record a run through the programs that `order` has a letter of.

    ``m``, ``h`` and ``x`` are motions, of which the last one is not followed; ``e`` is an element, ``c`` another law.
    """
    causality, rng = OF[model], np.random.default_rng(5)
    circle, hold = motions(causality)
    clock = Clock(1e-3)

    def shake(state: State, number: int) -> None:
        state.position += rng.normal(0, 1e-4, 2)
        state.velocity += rng.normal(0, 0.02, 2)
        state.force *= 0.2
        if number % 97 < 3:
            state.velocity[1] = np.nan

    device = BenchDevice(clock, causality, shake, max_force_rate=2000.0, fade_in=0.05)
    limits = Limits.of(device.spec)
    recorder = Recorder(folder, {"device": asdict(device.spec), "limits": asdict(limits), "rate_hz": 1000.0})
    programs: list[tuple[Any, int]] = []
    for version, letter in enumerate(order):
        number = version if letter != "c" else programs[-1][1]
        law = {**LAW, "force": 2.0} if letter == "c" else LAW
        if letter in "mhx":
            program: Any = {"m": circle, "h": hold, "x": replace(hold, max_error=1e-3)}[letter]
            entry = keep_motion(folder, program, number)
        else:
            program = make_element(model, law, ELEMENTS[model], 1e-3)
            entry = {"program": number, "model": model, "law": law, "element": ELEMENTS[model]}
        programs.append((program, number))
        recorder.journal_settings(version, entry)

    def change(rendering: Rendering) -> None:
        version, rest = divmod(clock.tick, every)
        if rest == 0 and 0 < version < len(programs):
            rendering.take(*programs[version], version)

    recorder.follow(Reader(trace))
    servo = Servo(device, programs[0][0], trace, clock=clock, limits=limits, before_tick=change)
    servo.run(every * len(order) * 1e-3)
    recorder.drain()
    recorder.close({}, complete=True)
    return Recording(folder)


@pytest.mark.parametrize("model", OF)
@pytest.mark.parametrize("order", ["m", "mh", "em", "mehce"])
def test_every_tick_comes_out_with_the_same_bits(tmp_path: Path, trace: Trace, model: str, order: str) -> None:
    recording = record(tmp_path / "run", trace, model, order)
    assert set(recording.rows["settings_version"]) == set(range(len(order)))
    found = verify(recording)
    assert (found.ticks, found.mismatches, found.verdict) == (300 * len(order), 0, "ok")


@settings(max_examples=5)
@given(order=some.text("mhe", min_size=2, max_size=12), model=some.sampled_from(list(OF)))
def test_whatever_the_order_and_however_often(tmp_path_factory: pytest.TempPathFactory, order: str, model: str) -> None:
    place = tmp_path_factory.mktemp("run")
    recording = record(place / "run", Trace.create(place / "trace"), model, order, every=37)
    assert verify(recording).mismatches == 0


@pytest.mark.parametrize("model", OF)
def test_a_motion_that_is_not_followed_replays_too(tmp_path: Path, trace: Trace, model: str) -> None:
    recording = record(tmp_path / "run", trace, model, "mx", every=90)
    assert (recording.rows["status"][-1] & Status.ASTRAY) != 0
    assert verify(recording).mismatches == 0


def test_another_table_is_found(tmp_path: Path, trace: Trace) -> None:
    recording = record(tmp_path / "run", trace, "C", "em")
    path = recording.folder / table_name(1)
    table = np.load(path)
    table[100, 0] += 1e-9
    np.save(path, table)
    with pytest.raises(RecordingError, match="its SHA-256 is another"):
        verify(recording)
    path.unlink()
    with pytest.raises(RecordingError, match="cannot be read"):
        verify(recording)


def test_a_motion_comes_out_of_its_journal_as_it_was(tmp_path: Path) -> None:
    motion = motions(Causality.IMPEDANCE)[0]
    entry = json.loads(json.dumps({"version": 7, **keep_motion(tmp_path, motion, 3)}))
    again = read_program(tmp_path, entry, Causality.IMPEDANCE, 1e-3)
    assert isinstance(again, Motion)
    assert again.facts == motion.facts
    np.testing.assert_array_equal(again.table, motion.table)
    ours, theirs = parameters_of(again, 3), parameters_of(motion, 3)
    ours["motion"]["table"] = theirs["motion"]["table"] = 0
    assert ours.tobytes() == theirs.tobytes()


def test_a_table_that_is_no_numbers_is_refused(tmp_path: Path) -> None:
    entry = keep_motion(tmp_path, motions(Causality.IMPEDANCE)[0], 0)
    np.save(tmp_path / table_name(0), np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(RecordingError, match="cannot be read"):
        read_program(tmp_path, entry, Causality.IMPEDANCE, 1e-3)
