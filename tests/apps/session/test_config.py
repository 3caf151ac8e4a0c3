"""From text to a validated session: every mistake is one line that names the setting and what is allowed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import devices
from apps.session.record import new_recorder
from apps.session.run import Session
from apps.settings.config import complete, gather, parse_assignment
from apps.settings.models import MODELS
from apps.settings.sliders import sliders
from haptics.elements import tables
from haptics.errors import CausalityError, ConfigurationError
from haptics.reading import sha256_of
from haptics.recording.recording import Recording
from haptics.rendering.envelope import Limits
from tests.haptics.design.test_measured import FILE


def config_of(*assignments: str, file: Path | None = None) -> Any:
    return complete(gather(file, assignments))


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_device_and_working_defaults(model: str) -> None:
    config = config_of(f"session.model={model}")
    element = config.built_element
    assert element.model == model
    assert config.spec.causality is element.causality


def test_the_defaults_are_those_of_the_experiments_in_the_paper() -> None:
    admittance, impedance = config_of("session.model=A"), config_of("session.model=C")
    assert (admittance.law, admittance.element) == ({"name": "coulomb", "force": 6.0}, {"mass": 2.0})
    assert impedance.law == {"name": "coulomb", "force": 4.0}
    assert impedance.element == {"stiffness": 6000.0, "damping": 10.0}


def test_file_assignments_and_their_order(tmp_path: Path) -> None:
    file = tmp_path / "session.toml"
    file.write_text('[session]\nmodel = "B"\nrate = 500\n[law]\nforce = 2\n[element]\nmass = 0.3\n')
    config = config_of("law.force=3", "law.force=3.5", file=file)
    assert config.session.rate == 500.0
    assert config.law["force"] == 3.5
    assert config.element == {"mass": 0.3, "stiffness": 6000.0, "damping": 10.0}


def test_words_need_no_quotation_marks() -> None:
    assert config_of("law.name=stribeck").law["name"] == "stribeck"
    assert parse_assignment("device.log=/tmp/x.npy") == ("device", "log", "/tmp/x.npy")
    assert parse_assignment("hand.name='mouse'") == ("hand", "name", "mouse")


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["element.mass=-1", "session.model=A"], r"element\.mass = -1: must be a finite number greater than 0 kg"),
        (["law.force=nan"], r"law\.force = nan: must be a finite number at least 0 N"),
        (["law.farce=3"], r"unknown setting 'law\.farce'\. Did you mean 'law\.force'"),
        (["lore.force=3"], r"unknown table of settings 'lore'\. Did you mean 'law'|Allowed: .*law"),
        (["law.name=karnop"], r"unknown law 'karnop'"),
        (["session.model=E"], r"unknown model 'E'"),
        (["session.rate=0"], r"session\.rate = 0: must be a finite number at least 10 Hz"),
        (["session.rate=9000"], r"rate = 9000 Hz: virtual-joystick can be served at 100 to 8000 Hz"),
        (["session.duration=-5"], r"session\.duration = -5"),
        (["session.seed=-1"], r"session\.seed = -1"),
        (["session.seed=1.5"], r"session\.seed = 1\.5"),
        (["device.name=joystik"], r"unknown device 'joystik'\. Did you mean 'pid-joystick'"),
        (["device.mass=-0.2"], r"mass = -0\.2"),
        (["device.colour=red"], r"device\.colour"),
        (["hand.name=fist"], r"unknown hand 'fist'"),
        (["hand.stiffness=-3"], r"stiffness = -3"),
        (["hand.name=mouse"], r"live view"),
        (["envelope.max_force=99"], r"envelope\.max_force = 99: must be at most 10"),
        (["envelope.max_force=many"], r"envelope\.max_force = 'many'"),
        (["law.name=stribeck", "law.stribeck_velocity=0.01"], r"condition 15"),
        (["force"], r"must have the form table\.name=value"),
        (["element.stiffness=0", "element.damping=0"], r"at least one must be greater than 0"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(assignments: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        config_of(*assignments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("device", "model"), [("virtual-joystick", "A"), ("virtual-joystick", "D"), ("virtual-arm", "C")]
)
def test_a_wrong_pair_says_which_go_together(device: str, model: str) -> None:
    with pytest.raises(CausalityError) as caught:
        config_of(f"device.name={device}", f"session.model={model}")
    assert "virtual-joystick with model B or C" in str(caught.value)
    assert "virtual-arm with model A or D" in str(caught.value)


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
def test_a_wrong_file_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "session.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        config_of(file=file)
    assert str(file) in str(caught.value)


@given(st.lists(st.text(alphabet="lawforce.=-0123456789nas[]\"'\n{}#", max_size=30), max_size=3))
def test_any_assignment_gives_a_session_or_a_configuration_error(assignments: list[str]) -> None:
    try:
        config_of(*assignments)
    except ConfigurationError as error:
        assert str(error)


def test_a_parameter_change_is_validated_and_leaves_the_old_session_alone() -> None:
    config = config_of("law.name=stribeck")
    assert config.with_parameter("element.stiffness", 3000.0).element["stiffness"] == 3000.0
    assert config.element["stiffness"] == 6000.0
    for key, value in (("element.stiffness", -1.0), ("law.stribeck_velocity", 1e-3), ("law.nothing", 1.0), ("x", 1.0)):
        with pytest.raises(ConfigurationError):
            config.with_parameter(key, value)


@pytest.mark.parametrize("value", ["1" + "0" * 5000, "1" + "0" * 400, "[" * 2000 + "]" * 2000])
def test_a_value_beyond_reason_is_refused_in_one_sentence(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"law\.force = .*: must be a finite number"):
        config_of(f"law.force={value}")


def test_the_file_of_a_law_lies_beside_the_configuration_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_what_a_session_is_made_of_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []

    def counted(owner: Any, name: str) -> None:
        build = getattr(owner, name)

        def counting(*arguments: Any, **settings: Any) -> Any:
            built.append(name)
            return build(*arguments, **settings)

        monkeypatch.setattr(owner, name, counting)

    counted(devices, "create_device")
    counted(tables, "make_element")
    counted(Limits, "of")
    config = complete({"session": {"record": str(tmp_path)}})
    session = Session(config, lambda line: None)
    assert session.started["dead_man"] == config.limits.dead_man
    assert sliders(config)
    assert sorted(built) == ["create_device", "make_element", "of"]
    built.clear()
    changed = config.with_tables({"session": {"model": "B"}}).with_parameter("law.force", 3.0)
    assert (changed.built_element.model, config.built_element.model) == ("B", "C")
    assert built == ["make_element", "make_element"], "what changes, and nothing else"
    session.recorder._ticks.close()
    session.servo.close()


def test_a_contact_beyond_the_boundary_that_was_measured_is_refused_at_the_start_and_later(tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(FILE.replace('"bench one"', '"virtual-joystick"'))

    def tables(stiffness: float) -> dict[str, dict[str, Any]]:
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


# ---- one file for both causalities

BOTH = """
[law]
name = "coulomb"
force = 3.0
[impedance]
model = "iwan"
element = { stiffness = 2000.0, stiff_share = 0.4 }
[admittance]
model = "D"
[admittance.element]
stiffness = 3000.0
[provenance]
measured = "a joint"
lever_arm_m = 0.1
"""


@pytest.fixture
def both(tmp_path: Path) -> Path:
    file = tmp_path / "both.toml"
    file.write_text(BOTH)
    return file


@pytest.mark.parametrize(
    ("assignments", "model", "element"),
    [
        ([], "iwan", {"stiffness": 2000.0, "stiff_share": 0.4, "spread": 0.8}),
        (["device.name=virtual-joystick"], "iwan", {"stiffness": 2000.0}),
        (["device.name=virtual-arm"], "D", {"mass": 2.0, "stiffness": 3000.0, "damping": 400.0}),
        (["session.model=iwan"], "iwan", {"stiffness": 2000.0}),
        (["session.model=D"], "D", {"stiffness": 3000.0}),
        (["session.model=C"], "C", {"stiffness": 6000.0, "damping": 10.0}),
        (["session.model=A"], "A", {"mass": 2.0}),
        (["element.stiffness=500", "device.name=virtual-arm"], "D", {"stiffness": 500}),
        (["impedance.element.stiffness=700"], "iwan", {"stiffness": 700, "stiff_share": 0.4}),
    ],
)
def test_the_devices_causality_chooses_model_and_element(
    both: Path, assignments: list[str], model: str, element: dict[str, float]
) -> None:
    config = config_of(*assignments, file=both)
    assert config.session.model == model
    assert element.items() <= config.element.items()
    assert "provenance" not in config.as_dict()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("impedance.modell=C", r"unknown key of \[impedance\] 'modell'.*'model'"),
        ("impedance.model=A", r"unknown impedance\.model 'A'.*iwan"),
        ("admittance.model=", r"unknown admittance\.model ''"),
        ("impedance.element=3", r"impedance\.element = 3: must be a table"),
        ("impedance.element.stifness=3", r"unknown setting 'element\.stifness'\. Did you mean 'element\.stiffness'"),
    ],
)
def test_a_wrong_table_for_a_causality_is_refused(both: Path, assignment: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        config_of(assignment, file=both)
