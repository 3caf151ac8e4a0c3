"""An experiment from its file: complete where it is right, and refused with line and key where it is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from apps.experiment.design import read_design
from haptics.errors import ConfigurationError
from tests.apps.experiment.design.designs import WEBER, changed


def line_of(text: str, mark: str) -> int:
    return text[: text.index(mark)].count("\n") + 1


def test_a_design_has_the_session_with_everything_that_a_session_can_be(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path, "[session]\n", "[session]\nrate = 2000.0\n"))
    config = design.config(design.condition("2 N"), 2.5)
    assert (config.session.rate, config.law["force"], config.device) == (2000.0, 2.5, "virtual-joystick")
    assert design.procedure_of(design.condition("2 N"))["most_trials"] == 3
    assert design.procedure_of(design.condition("1 N"))["most_trials"] == 4


WRONG = [
    ("reference = 2.0", "reference = -2.0", "reference = -2.0", "conditions[1].reference"),
    ("reference = 2.0", 'reference = "2 N"', '"2 N"\nprocedure', "conditions[1].reference"),
    ('kind = "staircase"', 'kind = "stairs"', 'kind = "stairs"', "procedure.kind"),
    ("most_trials = 4", "most_trials = 0", "most_trials = 0", "procedure.most_trials"),
    ("{ most_trials = 3 }", "{ most_trials = 0 }", "procedure = {", "conditions[1].procedure.most_trials"),
    ("maximum = 2.0", "maximum = 20.0", "maximum = 20.0", "procedure.maximum"),
    ("rest = 0.4", "rests = 0.4", "rests = 0.4", "hand.rests"),
    ('name = "coulomb"', 'name = "coulom"', 'name = "coulom"', "law.name"),
    ('model = "C"', 'model = "A"', 'model = "A"', "session.model"),
    ('axis = "law.force"', 'axis = "law.mass"', 'axis = "law.mass"', "stimulus.axis"),
    ("strokes = 2", "strokes = 2.5", "strokes = 2.5", "exploration.strokes"),
    ("start = [-0.03, 0.0]", "start = [0.0]", "start = [0.0]", "exploration.start"),
    ('"2" = ["2", "right"]', '"2" = ["left"]', "keys = {", "response.keys.2"),
    ('"2" = ["2", "right"]', '"3" = ["3"]', "keys = {", "response.keys.3"),
    ("block = 5", "blok = 5", "blok = 5", "trials.blok"),
    ("[catch]", "[cach]", "[cach]", "cach"),
    ("seed = 7", "seed = ", "seed = ", ""),
    ("seed = 7", "seed = 7\nblind = 1", "blind = 1", "experiment.blind"),
    ('[session]\nmodel = "C"', '[session]\nclock = "off"', 'clock = "off"', "session.clock"),
    ('name = "2 N"', 'name = "1 N"', '"1 N"\nreference = 2.0', "conditions"),
    ("[stimulus]", "[stimulus]\nresolution = 0.05", "minimum = 0.02", "procedure.minimum"),
    ("least_speed = 0.025", "least_speed = 0.25", "least_speed = 0.25", "exploration.least_speed"),
    ("[catch]", "[analysis]\npercent = [20.0]\n[catch]", "percent = [20.0]", "analysis.percent"),
    ("[catch]", "[analysis]\nshape = 'weibul'\n[catch]", "shape = 'weibul'", "analysis.shape"),
    ("[catch]", "[analysis]\nproportion = 0.8\n[catch]", "proportion = 0.8", "analysis.proportion"),
    ("[catch]", "[analysis]\nplan = [1]\n[catch]", "plan = [1]", "analysis.plan"),
    ("reference = 1.0", "reference = -1.0", "reference = -1.0", "must be a finite number at least 0."),
]


@pytest.mark.parametrize(("old", "new", "mark", "key"), WRONG, ids=[new.split("\n")[-1] for _, new, _, _ in WRONG])
def test_a_mistake_is_refused_with_its_line_and_key(tmp_path: Path, old: str, new: str, mark: str, key: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(ConfigurationError) as caught:
        read_design(path)
    found = re.match(rf"{re.escape(str(path))}:(\d+): ", str(caught.value))
    assert found, caught.value
    assert int(found[1]) == line_of(path.read_text(encoding="utf-8"), mark), caught.value
    assert key in str(caught.value)


def test_a_level_beyond_the_largest_force_is_refused_with_the_one_that_can_be_had(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the highest level on this reference is 8 N"):
        read_design(changed(tmp_path, "maximum = 2.0", "maximum = 8.5"))
    read_design(changed(tmp_path, "maximum = 2.0", "maximum = 8.0"))


def test_a_level_finer_than_the_device_renders_is_refused_with_the_increment_on_that_pedestal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"smallest increment on the pedestal of 1 is 0\.05"):
        read_design(changed(tmp_path, "[stimulus]", "[stimulus]\nresolution = 0.05"))


def test_the_step_of_force_is_that_of_the_data_sheet_where_the_file_says_none(tmp_path: Path) -> None:
    """An emulated SideWinder has 255 steps: of its 7 N or so each is more than 0.02 N."""
    stick = 'name = "pid-joystick"\nemulated = true\nemulator = "sidewinder-ff2"'
    text = WEBER.replace('name = "virtual-joystick"', stick).replace(
        "[[-0.03, 0.0], [0.03, 0.0]]", "[[-0.02, 0.0], [0.02, 0.0]]"
    )
    with pytest.raises(
        ConfigurationError, match=r"weber\.toml:\d+: .*finer than pid-joystick renders in law\.force"
    ) as told:
        read_design(changed(tmp_path, text=text))
    step = float(str(told.value).rpartition(" is ")[2].rstrip("."))
    assert 0.02 < step < 0.1
    read_design(changed(tmp_path, "minimum = 0.02", f"minimum = {1.01 * step}", text))


OWN_FRICTION = """\
[provenance]
device = "virtual-joystick"
[joint.x]
rotary = false
[joint.x.friction]
model = "coulomb"
coulomb_force_n = 1.0
viscosity_ns_per_m = 0.0
[joint.y]
rotary = false
[joint.y.friction]
model = "coulomb"
coulomb_force_n = 1.0
viscosity_ns_per_m = 0.0
"""


def detection(folder: Path, reference: float) -> Path:
    """Write a detection on a joystick of whose friction of 1 N a tenth is left."""
    (folder / "own.toml").write_text(OWN_FRICTION, encoding="utf-8")
    text = WEBER.replace('"discrimination"', '"detection-2ifc"')
    text = text.replace('"virtual-joystick"', '"virtual-joystick"\nfriction_parameters = "own.toml"\n')
    text = text.replace("reference = 1.0", f"reference = {reference}").replace(
        "easy = 0.2", "easy = 0.2\neasy_level = 2.0"
    )
    return changed(folder, text=text)


def test_detection_below_the_friction_that_is_left_is_refused_and_a_pedestal_offered(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"conditions\.reference = 0\.1\b") as caught:
        read_design(detection(tmp_path, 0.0))
    assert ":3: " in str(caught.value)
    read_design(detection(tmp_path, 0.1))
