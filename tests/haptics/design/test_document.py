"""The page on choosing parameters says what the code computes."""

import math
import re
from pathlib import Path

import pytest

import devices
from haptics.design import Handle, PositionServo, mass_limit, stiffness_limit

PAGE = (Path(__file__).parents[3] / "docs" / "choosing_parameters.md").read_text(encoding="utf-8")


def table(first: str) -> list[list[str]]:
    """Return the rows of the table whose heading begins with `first`, cells as text."""
    lines = PAGE[PAGE.index(f"| {first}") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", table("m [kg]"))
def test_the_table_of_stiffnesses(row: list[str]) -> None:
    mass, damping, *cells = map(float, row)
    for delay, cell in zip((0.0, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3), cells, strict=True):
        assert f"{stiffness_limit(Handle(mass, damping, delay), 10.0) / 1e3:.1f}" == f"{cell:.1f}"


@pytest.mark.parametrize("row", table("natural frequency"))
def test_the_table_of_masses(row: list[str]) -> None:
    for grip, cell in zip(((400.0, 8.0), (1000.0, 20.0), (1500.0, 20.0)), row[1:], strict=True):
        limit = mass_limit(PositionServo(float(row[0]), grip_stiffness=grip[0], grip_damping=grip[1]))
        assert cell == ("none" if math.isinf(limit) else f"{limit:.3f}")


@pytest.mark.parametrize("row", table("servo law"))
def test_the_table_of_servo_laws(row: list[str]) -> None:
    law, limit, shakes, *_ = row
    encoder = "both" if "linearising" in law else "motor"
    settings = {"servo": {"law": law.strip("`")}, "arm": {"encoder": encoder}}
    spec = devices.create_device("virtual-arm", settings | {"hand": {"name": "minimum-jerk"}}).spec
    assert (spec.grip_stiffness, spec.grip_damping) == (400.0, 8.0)
    assert spec.least_mass == pytest.approx(float(limit), abs=0.01)
    assert float(shakes) < float(limit)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "choosing_parameters.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 4
