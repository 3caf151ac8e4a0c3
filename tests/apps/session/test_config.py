"""Settings of a session: text, files, scenes, walls and sliders."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.session.record import ParameterAdvice, new_recorder
from apps.settings.config import complete, gather, parse_assignment
from apps.settings.models import MODELS, fitting
from apps.settings.options import sliders
from apps.settings.reference import pages
from haptics import Coulomb, Stribeck
from haptics.elements.catalogue import LAWS
from haptics.errors import CausalityError, ConfigurationError
from haptics.files import sha256_of
from haptics.recording.recording import Recording
from haptics.rendering.programs import SceneElement
from haptics.scenes import Circle, HalfPlane, Region, Scene, Wall, read_scene, scene_table, write_scene
from tests.haptics.design.test_bounds import BENCH as FILE
from tests.processes import ROOT
from tests.sampling import sample


def config_of(*assignments, file=None):
    return complete(gather(file, assignments))


@pytest.mark.parametrize("model", MODELS)
def test_model_has_a_device_and_working_defaults(model):
    config = config_of(f"session.model={model}")
    element = config.built_element
    assert element.model == model
    assert config.spec.causality is element.causality


def test_defaults_are_those_of_the_experiments_in_the_paper():
    admittance, impedance = config_of("session.model=A"), config_of("session.model=C")
    assert (admittance.law, admittance.element) == ({"name": "coulomb", "force": 6.0}, {"mass": 2.0})
    assert impedance.law == {"name": "coulomb", "force": 4.0}
    assert impedance.element == {"stiffness": 6000.0, "damping": 10.0}


def test_assignments_override_the_file_and_the_last_one_counts(tmp_path):
    file = tmp_path / "session.toml"
    file.write_text('[session]\nmodel = "B"\nrate = 500\n[law]\nforce = 2\n[element]\nmass = 0.3\n')
    config = config_of("law.force=3", "law.force=3.5", file=file)
    assert (config.session.rate, config.law["force"]) == (500.0, 3.5)
    assert config.element == {"mass": 0.3, "stiffness": 6000.0, "damping": 10.0}
    assert parse_assignment("device.log=/tmp/x.npy") == ("device", "log", "/tmp/x.npy")
    assert parse_assignment("hand.name='mouse'") == ("hand", "name", "mouse")


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["element.mass=-1", "session.model=A"], r"element\.mass = -1: must be a finite number greater than 0 kg"),
        (["law.force=nan"], r"law\.force = nan: must be a finite number at least 0 N"),
        (["law.farce=3"], r"unknown setting 'law\.farce'\. Did you mean 'law\.force'"),
        (["lore.force=3"], r"unknown table of settings 'lore'\. Did you mean 'law'|Allowed: .*law"),
        (["session.model=E"], r"unknown model 'E'"),
        (["session.rate=0"], r"session\.rate = 0: must be a finite number at least 10 Hz"),
        (["session.rate=9000"], r"rate = 9000 Hz: virtual-joystick can be served at 100 to 8000 Hz"),
        (["session.duration=-5"], r"session\.duration = -5"),
        (["session.seed=-1"], r"session\.seed = -1"),
        (["device.name=joystik"], r"unknown device 'joystik'\. Did you mean 'pid-joystick'"),
        (["device.colour=red"], r"device\.colour"),
        (["hand.name=fist"], r"unknown hand 'fist'"),
        (["hand.name=mouse"], r"live view"),
        (["envelope.max_force=99"], r"envelope\.max_force = 99: must be at most 10"),
        (["envelope.max_force=many"], r"envelope\.max_force = 'many'"),
        (["law.name=stribeck", "law.stribeck_velocity=0.01"], r"condition 15"),
        (["force"], r"must have the form table\.name=value"),
        (["element.stiffness=0", "element.damping=0"], r"at least one must be greater than 0"),
    ],
)
def test_invalid_setting_is_named_in_one_line(assignments, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        config_of(*assignments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("device", "model"), [("virtual-joystick", "A"), ("virtual-joystick", "D"), ("virtual-arm", "C")]
)
def test_wrong_causality_is_refused_with_the_valid_pairs(device, model):
    words = "virtual-joystick with model B or C.*virtual-arm with model A or D"
    with pytest.raises(CausalityError, match=words):
        config_of(f"device.name={device}", f"session.model={model}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"cannot be read \(No such file"),
        (b"[law\n", "is no TOML"),
        (b"\xff\xfe", "is no TOML"),
        (b"[lav]\nforce = 1\n", "Did you mean 'law'"),
        (b"law = 3\n", r"must be a table, \[law\]"),
    ],
)
def test_unreadable_settings_file_is_named(tmp_path, content, message):
    file = tmp_path / "session.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        config_of(file=file)
    assert str(file) in str(caught.value)


@given(st.lists(st.text(alphabet="lawforce.=-0123456789nas[]\"'\n{}#", max_size=30), max_size=3))
def test_any_assignment_gives_a_session_or_a_configuration_error(assignments):
    try:
        config_of(*assignments)
    except ConfigurationError as error:
        assert str(error)


def test_parameter_change_is_validated_and_keeps_the_old_configuration():
    config = config_of("law.name=stribeck")
    assert config.with_parameter("element.stiffness", 3000.0).element["stiffness"] == 3000.0
    assert config.element["stiffness"] == 6000.0
    for key, value in (("element.stiffness", -1.0), ("law.stribeck_velocity", 1e-3), ("x", 1.0)):
        with pytest.raises(ConfigurationError):
            config.with_parameter(key, value)


@pytest.mark.parametrize("value", ["1" + "0" * 5000, "1" + "0" * 400, "[" * 2000 + "]" * 2000])
def test_excessive_value_is_refused(value):
    with pytest.raises(ConfigurationError, match=r"law\.force = .*: must be a finite number"):
        config_of(f"law.force={value}")


def test_law_file_is_relative_to_its_configuration(tmp_path, monkeypatch):
    for place, level in (("beside", 2), ("here", 3)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "own.py").write_text(f"def own(speed, level={level}.0):\n    return level\n")
    file = tmp_path / "beside" / "session.toml"
    monkeypatch.chdir(tmp_path / "here")
    file.write_text('[law]\nfile = "own.py"\n')
    assert config_of(file=file).law["level"] == 2.0
    assert config_of("law.file=own.py", file=file).law["level"] == 3.0
    file.write_text(f'[law]\nfile = "{tmp_path / "here" / "own.py"}"\n')
    assert config_of(file=file).law["level"] == 3.0


def test_contact_beyond_the_measured_boundary_is_refused_at_the_start_and_later(tmp_path):
    file = tmp_path / "tuned.toml"
    file.write_text(FILE.replace('"bench one"', '"virtual-joystick"'))

    def tables(stiffness):
        session = {"model": "C", "measured": str(file), "record": str(tmp_path)}
        return {"session": session, "element": {"stiffness": stiffness, "damping": 10.0}}

    config = complete(tables(7990.0))
    assert config.known_spec.mass == 0.2
    for beyond in (
        lambda: complete(tables(8010.0)),
        lambda: config.with_parameter("element.stiffness", 8010.0),
        lambda: config.with_tables({"element": {"stiffness": 8010.0}}),
    ):
        with pytest.raises(ConfigurationError, match="begins to swing at 8000 N/m"):
            beyond()
    recorder = new_recorder(config, [])
    recorder.close({}, complete=False)
    assert Recording(recorder.folder).metadata["measured_file_hash"] == sha256_of(file)


# --- one file for both causalities ---------------------------------------------------------------------------------

Numbers = dict[str, float]


@pytest.fixture
def both(tmp_path):
    file = tmp_path / "both.toml"
    file.write_text(
        '[law]\nname = "coulomb"\nforce = 3.0\n'
        '[impedance]\nmodel = "iwan"\nelement = { stiffness = 2000.0, stiff_share = 0.4 }\n'
        '[admittance]\nmodel = "D"\n[admittance.element]\nstiffness = 3000.0\n'
        '[provenance]\nmeasured = "a joint"\nlever_arm_m = 0.1\n'
    )
    return file


@pytest.mark.parametrize(
    ("assignments", "model", "element"),
    [
        ([], "iwan", {"stiffness": 2000.0, "stiff_share": 0.4, "spread": 0.8}),
        (["device.name=virtual-joystick"], "iwan", {"stiffness": 2000.0}),
        (["device.name=virtual-arm"], "D", {"mass": 2.0, "stiffness": 3000.0, "damping": 400.0}),
        (["session.model=D"], "D", {"stiffness": 3000.0}),
        (["session.model=C"], "C", {"stiffness": 6000.0, "damping": 10.0}),
        (["element.stiffness=500", "device.name=virtual-arm"], "D", {"stiffness": 500}),
        (["impedance.element.stiffness=700"], "iwan", {"stiffness": 700, "stiff_share": 0.4}),
    ],
)
def test_causality_selects_model_and_element(both, assignments, model, element):
    config = config_of(*assignments, file=both)
    assert config.session.model == model
    assert element.items() <= config.element.items()
    assert "provenance" not in config.as_dict()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("impedance.modell=C", r"unknown key of \[impedance\] 'modell'.*'model'"),
        ("impedance.model=A", r"unknown impedance\.model 'A'.*iwan"),
        ("impedance.element=3", r"impedance\.element = 3: must be a table"),
        ("impedance.element.stifness=3", r"unknown setting 'element\.stifness'\. Did you mean 'element\.stiffness'"),
    ],
)
def test_invalid_causality_table_is_refused(both, assignment, message):
    with pytest.raises(ConfigurationError, match=message):
        config_of(assignment, file=both)


# --- scenes and walls -------------------------------------------------------------------------------------------------

MINE = Scene(Coulomb(1.0), (Region("disc", Circle((0.0, 0.0), 0.02), Coulomb(6.0)),), name="mine")


def session(**tables):
    return complete({"device": {"name": "virtual-joystick"}, **tables})


def test_shipped_scene_is_found_by_name_and_its_background_is_the_law():
    config = complete({**gather(None, ["scene=ice-wood-rubber"]), "device": {"name": "virtual-joystick"}})
    assert config.scene == read_scene("ice-wood-rubber")
    assert config.built_element.law == Stribeck(1.8, 2.2, 0.1, 1.0)
    assert isinstance(config.program, SceneElement)
    assert config.strongest_element.law == Stribeck(4.2, 5.0, 0.1, 1.0)


@pytest.mark.parametrize("line", ['scene = "mine.toml"', '[session]\nscene = "mine.toml"'])
def test_settings_file_names_a_scene_file_beside_it(line, tmp_path):
    write_scene(MINE, tmp_path / "mine.toml")
    (tmp_path / "settings.toml").write_text(f"{line}\n")
    tables = gather(tmp_path / "settings.toml", ["device.name=virtual-joystick"])
    assert complete(tables).scene == MINE
    over = gather(tmp_path / "settings.toml", ["device.name=virtual-joystick", "scene=border"])
    assert complete(over).scene == read_scene("border")
    (tmp_path / "shipped.toml").write_text('scene = "border"\n')
    assert complete(gather(tmp_path / "shipped.toml", ["device.name=virtual-joystick"])).scene == read_scene("border")


def test_law_parameter_changes_the_background_of_the_scene():
    config = session(scene=scene_table(MINE))
    louder = config.with_parameter("law.force", 2.0)
    assert louder.scene is not None and louder.scene.law == Coulomb(2.0) == louder.built_element.law
    assert louder.scene.regions == MINE.regions
    stiffer = config.with_parameter("element.stiffness", 3000.0)
    assert isinstance(config.program, SceneElement) and isinstance(stiffer.program, SceneElement)
    assert stiffer.program.surface.border > config.program.surface.border


def test_scene_is_replaced_during_a_run_by_table_or_name():
    config = session(scene=scene_table(MINE))
    assert config.with_tables({"scene": "border"}).scene == read_scene("border")
    other = config.with_tables({"scene": scene_table(read_scene("stick-slip-patch"))})
    assert other.law["name"] == "stribeck" and isinstance(other.program, SceneElement)
    changed = config.with_tables({"law": {"force": 3.0}})
    assert changed.scene is not None and changed.scene.law == Coulomb(3.0)
    with pytest.raises(ConfigurationError, match="all laws of a scene must be of one class"):
        config.with_tables({"law": {"name": "stribeck"}})
    assert session().with_tables({"scene": "border"}).scene is not None
    left = config.with_tables({"scene": ""})
    assert left.scene is None and left.built_element.law == MINE.law


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"session": {"scene": "iced"}}, "unknown scene 'iced'"),
        ({"session": {"scene": "none.toml"}}, "none.toml: cannot be read"),
        ({"session": {"scene": 3}}, "scene = 3: must be a scene file"),
        (
            {"session": {"scene": "border"}, "law": {"force": 3.0}},
            "law.force = 3.0: this session uses the laws of its scene",
        ),
        ({"session": {"scene": "border", "model": "dahl"}}, "model dahl: cannot be put on a scene"),
        ({"scene": {"law": 3}}, "law: must be a table"),
        ({"session": {"scene": "stick-slip-patch"}, "element": {"stiffness": 1000.0}}, "'patch'.*condition 15"),
    ],
)
def test_incompatible_scene_is_refused(tables, words):
    with pytest.raises(ConfigurationError, match=words):
        session(**tables)


@pytest.mark.parametrize("device", ["virtual-joystick", "virtual-arm"])
def test_shipped_box_reaches_the_servo_and_the_recorded_settings_with_its_walls(device):
    config = complete(gather(None, ["scene=box", f"device.name={device}"]))
    assert isinstance(config.program, SceneElement)
    assert config.program.scene.walls == read_scene("box").walls
    assert complete(json.loads(json.dumps(config.as_dict()))).scene == config.scene
    assert "scene" not in session().as_dict()


def test_start_advice_names_a_wall_that_is_too_stiff():
    for stiffness, bounds in ((30e3, {"wall", "wall-encoder"}), (2000.0, set())):
        wall = Wall(HalfPlane((0.05, 0.0), (-1.0, 0.0)), stiffness)
        config = session(scene=scene_table(Scene(Coulomb(1.0), walls=(wall,))))
        counsel = ParameterAdvice(config.spec)
        advice = counsel.consider(config.built_element, 0, config.scene)
        warned = ("wall.stiffness = 30000 N/m" in advice, "lower it" in advice, "wall" in advice)
        assert warned == (bool(bounds),) * 3
        assert {one["bound"] for one in counsel.record if one["bound"].startswith("wall")} == bounds
        assert "wall" not in ParameterAdvice(config.spec).consider(config.built_element, 0)


# --- sliders ----------------------------------------------------------------------------------------------------------

PAIRS = [(device, model) for device, models in fitting().items() for model in models if device.startswith("virtual")]
TOGETHER = ("condition 15", "must be at least law.kinetic_force")
"""Errors that the end of a slider may cause in combination with the other parameters."""


def slider(key, *assignments):
    return next(parameter for parameter in sliders(config_of(*assignments)) if parameter.key == key)


@pytest.mark.parametrize(("device", "model"), sample(PAIRS, 6))
@pytest.mark.parametrize("law", [*LAWS, "stribeck-closed-form"])
def test_slider_can_be_moved_to_both_ends(device, model, law):
    try:
        config = config_of(f"device.name={device}", f"session.model={model}", f"law.name={law}")
    except ConfigurationError as error:
        assert "same in all directions" in str(error)
        return
    parameters = sliders(config)
    assert len(parameters) == len(config.element) + len(config.law) - 1
    for parameter in parameters:
        assert parameter.minimum < parameter.maximum
        assert parameter.minimum <= parameter.value <= parameter.maximum
        for end in (parameter.minimum, parameter.maximum):
            try:
                assert config.with_parameter(parameter.key, end)
            except ConfigurationError as error:
                assert any(words in str(error) for words in TOGETHER), error


@pytest.mark.parametrize(
    ("model", "law", "logarithmic"),
    [
        ("B", "stribeck", {"law.stribeck_velocity", "element.mass", "element.stiffness", "element.damping"}),
        ("A", "elliptic", {"law.force_x", "law.force_y", "element.mass"}),
        ("karnopp", "coulomb", {"element.threshold", "element.mass", "element.stiffness", "element.damping"}),
        ("hayward-armstrong", "coulomb-viscous", {"element.stiffness"}),
        ("iwan", "coulomb", {"element.stiffness", "element.damping", "element.stiff_stiffness"}),
    ],
)
def test_slider_over_decades_is_logarithmic(model, law, logarithmic):
    found = sliders(config_of(f"session.model={model}", f"law.name={law}"))
    assert {parameter.key for parameter in found if parameter.logarithmic} == logarithmic


def test_slider_range_ends_at_the_declared_limits():
    models = ("elastoplastic", "hayward-armstrong", "iwan", "karnopp")
    parameters = [parameter for model in models for parameter in sliders(config_of(f"session.model={model}"))]
    assert {parameter.key for parameter in parameters if parameter.whole} == {"element.count"}
    ranges = {parameter.key: (parameter.minimum, parameter.maximum) for parameter in parameters}
    assert ranges["element.elastic_share"] == (0.0, 0.99)
    assert ranges["element.stick_share"] == (0.1, 1.0)
    assert ranges["element.creep"] == ranges["element.residual"] == (0.0, 1.0)
    assert ranges["element.spread"] == (0.0, 0.99)
    assert ranges["element.threshold"] == (0.001, 0.5)


@pytest.mark.parametrize(("key", "value"), [("law.force", 20.0), ("element.stiffness", 1.0), ("element.damping", 0.0)])
def test_slider_range_includes_the_value(key, value):
    found = slider(key, "session.model=C", f"{key}={value}")
    assert found.value == value
    assert found.minimum <= value <= found.maximum
    assert found.logarithmic is (found.minimum > 0.0)


def test_slider_units_are_those_of_the_declarations(tmp_path):
    assert slider("law.stribeck_velocity", "law.name=stribeck-closed-form").unit == "m/s"
    assert slider("element.damping", "session.model=C").unit == "N s/m"
    assert slider("element.creep", "session.model=hayward-armstrong").unit == ""
    file = tmp_path / "law.py"
    file.write_text("def own(speed, force=3.0, dip=-0.5):\n    return force + dip\n")
    force, dip = (slider(f"law.{name}", f"law.file={file}") for name in ("force", "dip"))
    assert (force.unit, force.minimum, force.maximum) == ("", 0.0, 6.0)
    assert (dip.minimum, dip.maximum) == (-1.0, 1.0)


def test_settings_page_is_current_and_explains_every_setting():
    text = "\n".join(pages())
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == text, (
        "python -m apps.settings.reference > docs/settings.md"
    )
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    assert [row for row in rows if row.endswith("|  |")] == []
