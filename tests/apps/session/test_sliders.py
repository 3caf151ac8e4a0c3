"""The sliders of a session: what they can be moved to is allowed, and their scale suits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.front_ends.messages import Parameter
from apps.settings.config import SessionConfig, complete, gather
from apps.settings.models import fitting
from apps.settings.sliders import sliders
from haptics.elements.catalogue import LAWS
from haptics.errors import ConfigurationError
from tests.sampling import sample

PAIRS = [(device, model) for device, models in fitting().items() for model in models if device.startswith("virtual")]
TOGETHER = ("condition 15", "must be at least law.kinetic_force")
"""What may be wrong with the end of a slider: that it does not go with the other parameters."""


def config_of(*assignments: str) -> SessionConfig:
    return complete(gather(None, assignments))


def slider(key: str, *assignments: str) -> Parameter:
    return next(parameter for parameter in sliders(config_of(*assignments)) if parameter.key == key)


@pytest.mark.parametrize(("device", "model"), sample(PAIRS, 6))
@pytest.mark.parametrize("law", [*LAWS, "stribeck-closed-form"])
def test_a_slider_can_be_moved_to_both_of_its_ends(device: str, model: str, law: str) -> None:
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
def test_a_range_of_decades_is_logarithmic(model: str, law: str, logarithmic: set[str]) -> None:
    found = sliders(config_of(f"session.model={model}", f"law.name={law}"))
    assert {parameter.key for parameter in found if parameter.logarithmic} == logarithmic


def test_ranges_end_where_the_declaration_does() -> None:
    ranges = {
        parameter.key: (parameter.minimum, parameter.maximum)
        for model in ("elastoplastic", "hayward-armstrong", "iwan", "karnopp")
        for parameter in sliders(config_of(f"session.model={model}"))
    }
    assert ranges["element.elastic_share"] == (0.0, 0.99)
    assert ranges["element.stick_share"] == (0.1, 1.0)
    assert ranges["element.creep"] == ranges["element.residual"] == (0.0, 1.0)
    assert ranges["element.spread"] == (0.0, 0.99)
    assert ranges["element.threshold"] == (0.001, 0.5)


def test_a_count_and_only_a_count_is_whole() -> None:
    found = sliders(config_of("session.model=iwan"))
    assert [parameter.key for parameter in found if parameter.whole] == ["element.count"]


@pytest.mark.parametrize(("key", "value"), [("law.force", 20.0), ("element.stiffness", 1.0), ("element.damping", 0.0)])
def test_a_value_beyond_the_range_widens_it(key: str, value: float) -> None:
    found = slider(key, "session.model=C", f"{key}={value}")
    assert found.value == value
    assert found.minimum <= value <= found.maximum
    assert found.logarithmic is (found.minimum > 0.0)


def test_units_are_those_of_the_declarations(tmp_path: Path) -> None:
    assert slider("law.stribeck_velocity", "law.name=stribeck-closed-form").unit == "m/s"
    assert slider("element.damping", "session.model=C").unit == "N s/m"
    assert slider("element.creep", "session.model=hayward-armstrong").unit == ""
    file = tmp_path / "law.py"
    file.write_text("def own(speed, force=3.0, dip=-0.5):\n    return force + dip\n")
    force, dip = (slider(f"law.{name}", f"law.file={file}") for name in ("force", "dip"))
    assert (force.unit, force.minimum, force.maximum) == ("", 0.0, 6.0)
    assert (dip.minimum, dip.maximum) == (-1.0, 1.0)
