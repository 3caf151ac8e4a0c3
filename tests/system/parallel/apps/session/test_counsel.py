"""Parameters that do not suit the device: said in one line, once per crossing, and written into the recording."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.session.counsel import Counsel
from apps.session.record import _facts
from apps.session.run import Session
from apps.settings.config import complete
from apps.settings.models import fitting
from devices import is_virtual
from haptics.elements.models import MasslessImpedance
from haptics.friction.laws import Coulomb
from haptics.recording.recording import Recording
from tests.haptics.doubles import make_spec
from tests.system.parallel.apps.session.test_run import Script

JOYSTICK = make_spec(mass=0.2, damping=1.0, delay=0.5e-3, position_resolution=10e-6)


def model_c(stiffness: float, force: float = 4.0) -> MasslessImpedance:
    return MasslessImpedance(Coulomb(force), stiffness, 10.0)


def run_changing(session: Session, key: str, first: float, second: float) -> Any:
    """Run a session in which a parameter is changed twice."""
    steps: list[tuple[int, Any]] = [
        (100, lambda: session.change(key, first)),
        (150, lambda: session.change(key, second)),
        (200, session.stop),
    ]
    return session.run(Script(session, steps))


@pytest.mark.parametrize(
    ("device", "model"), [(name, model) for name, models in fitting().items() if is_virtual(name) for model in models]
)
def test_the_defaults_deserve_no_warning_except_those_of_models_without_damping(device: str, model: str) -> None:
    config = complete({"session": {"model": model}, "device": {"name": device}})
    element = config.built_element
    undamped = hasattr(element, "stiffness") and not hasattr(element, "damping")
    assert bool(Counsel(config.spec).consider(element, 0)) is undamped
    assert undamped is (model in {"dahl", "hayward-armstrong"})


def test_an_arm_that_no_mass_helps_can_be_recorded() -> None:
    config = complete({"session": {"model": "A"}, "device": {"name": "virtual-arm"}})
    vars(config)["spec"] = replace(config.spec, least_mass=math.inf)
    assert "no element.mass keeps it" in Counsel(config.spec).consider(config.built_element, 0)
    assert json.loads(json.dumps(_facts(config), allow_nan=False))["device"]["least_mass"] is None


def test_a_crossing_is_said_once_and_again_after_a_return() -> None:
    counsel = Counsel(JOYSTICK)
    said = [counsel.consider(model_c(K), version) for version, K in enumerate((4.5e3, 2e4, 3e4, 5e4, 4.5e3, 2e4))]
    assert [bool(line) for line in said] == [False, True, False, False, False, True]
    assert [entry["settings_version"] for entry in counsel.record] == [1, 5]
    assert counsel.warnings == [said[1], said[5]]


def test_a_second_bound_is_said_without_repeating_the_first() -> None:
    counsel = Counsel(JOYSTICK)
    first, second = counsel.consider(model_c(2e4), 0), counsel.consider(model_c(2e4, force=0.5), 1)
    assert "element.stiffness = 20000" in first and "encoder" not in first
    assert "encoder" in second and "element.stiffness = 20000" not in second


def test_notes_are_kept_but_not_said() -> None:
    counsel = Counsel(JOYSTICK)
    assert counsel.consider(model_c(7e3), 0) == ""
    assert [entry["severity"] for entry in counsel.record] == ["note"]
    assert counsel.warnings == []


def test_a_slider_that_is_moved_too_far_is_told_once_and_recorded(tmp_path: Path) -> None:
    told: list[str] = []
    warned: list[str] = []
    config = complete({"session": {"model": "C", "record": str(tmp_path)}})
    session = Session(config, told.append, warned.append)
    outcome = run_changing(session, "element.stiffness", 20_000.0, 30_000.0)
    assert [line for line in told if "buzzes" in line] == []
    assert len(warned) == 1
    assert warned[0].startswith("element.stiffness = 20000 N/m")
    assert outcome.summary["advice"] == warned
    advice = Recording(Path(outcome.summary["recording"])).metadata["advice"]
    warnings = [entry for entry in advice if entry["severity"] == "warning"]
    assert [(entry["settings_version"], entry["bound"], entry["value"]) for entry in warnings] == [
        (1, "stiffness", 2e4)
    ]


def test_a_poor_approximation_is_said_when_it_becomes_one(tmp_path: Path) -> None:
    """Condition (48): the closed form of a steep law is poor; the session renders it all the same."""
    told: list[str] = []
    law = {"name": "coulomb-viscous-closed-form", "viscosity": 1.0}
    config = complete({"session": {"model": "C", "record": str(tmp_path)}, "law": law})
    session = Session(config, told.append, told.append)
    outcome = run_changing(session, "law.viscosity", 30.0, 40.0)
    said = [line for line in told if "condition 48" in line]
    assert len(said) == 1 and "choose the exact law, coulomb-viscous," in said[0]
    assert outcome.summary["advice"] == said


def test_the_command_warns_in_one_line_and_runs_all_the_same(tmp_path: Path) -> None:
    wish = "run --device virtual-joystick --model C --set element.stiffness=60000 --duration 0.3 --headless --json"
    done = subprocess.run(
        [sys.executable, "-m", "apps", *wish.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[5])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("advice: ")]
    assert len(lines) == 1
    assert "element.stiffness = 60000 N/m" in lines[0] and "buzzes above 10500 N/m" in lines[0]
    answer = json.loads(done.stdout)
    assert lines[0] == f"advice: {answer['advice'][0]}"
    metadata = json.loads((tmp_path / answer["recording"] / "recording.json").read_text())
    assert [entry["bound"] for entry in metadata["advice"]] == ["stiffness"]
    assert metadata["advice"][0]["limit"] == pytest.approx(10_466.0, rel=1e-3)
