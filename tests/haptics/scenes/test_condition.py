"""Condition (15) over all that a scene mixes: compared with a dense search over mixtures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptics import CompliantAdmittance, Coulomb, GaussianStribeck, InertialImpedance, MasslessImpedance, Stribeck
from haptics.errors import ConfigurationError
from haptics.friction.laws import _Peaked
from haptics.scenes import Circle, HalfPlane, ImageMap, Region, Scene, Texture, fitted, require_solvable
from haptics.scenes.condition import mobility_limit, spread
from haptics.scenes.family import numbers_of

RIGHT, UP = HalfPlane((0.0, 0.0), (-1.0, 0.0)), HalfPlane((0.0, 0.0), (0.0, -1.0))


def laws(cls: type[_Peaked]) -> st.SearchStrategy[_Peaked]:
    return st.builds(
        lambda kinetic, peak, width, viscosity: cls(kinetic, kinetic + peak, width, viscosity),
        st.floats(0.0, 5.0),
        st.floats(0.0, 5.0),
        st.floats(0.01, 1.0),
        st.floats(0.0, 30.0),
    )


def fall(cls: type[_Peaked], numbers: np.ndarray) -> np.ndarray:
    """The steepest fall of laws, (n, 10), measured on their levels at many speeds in units of the peak's width."""
    static, kinetic, width, viscosity = (numbers[:, k : k + 1] for k in range(4))
    s = width * np.linspace(0.0, 2.0, 4001)
    power = 1 if cls is Stribeck else 2
    level = kinetic + (static - kinetic) * np.exp(-((s / width) ** power)) + viscosity * s
    return -(np.diff(level, axis=1) / np.diff(s, axis=1)).min(axis=1)


@pytest.mark.parametrize("cls", [Stribeck, GaussianStribeck])
@given(data=st.data())
def test_no_mixture_of_three_laws_falls_more_steeply_than_the_scene_says(
    cls: type[_Peaked], data: st.DataObject
) -> None:
    background, one, other = (data.draw(laws(cls)) for _ in range(3))
    scene = Scene(background, (Region("one", RIGHT, one), Region("other", UP, other)))
    shares = np.random.default_rng(1).dirichlet((0.4, 0.4, 0.4), 60)
    shares = np.concatenate((shares, np.eye(3)))
    mixed = shares @ np.stack([numbers_of(law) for law in (background, one, other)])
    steepest = max(float(fall(cls, mixed).max()), 0.0)
    limit = mobility_limit(scene)
    assert steepest * limit <= 1.0 + 1e-6 if np.isfinite(limit) else steepest <= 1e-9


def test_between_two_laws_the_limit_is_reached_not_only_bounded() -> None:
    """The steepest of all mixtures lies between: the peak comes up sooner than the viscosity."""
    one, other = Stribeck(1.0, 1.0, 0.02, 0.0), Stribeck(0.0, 8.0, 1.0, 10.0)
    scene = Scene(one, (Region("other", RIGHT, other),))
    shares = np.linspace(0.0, 1.0, 5001)[:, None]
    mixed = (1.0 - shares) * numbers_of(one) + shares * numbers_of(other)
    found = (mixed[:, 0] - mixed[:, 1]) / mixed[:, 2] - mixed[:, 3]
    assert found.argmax() not in (0, 5000)
    assert 1.0 / mobility_limit(scene) == pytest.approx(found.max(), rel=1e-6)


def test_the_whole_scale_of_an_image_and_the_whole_amplitude_of_a_texture_count() -> None:
    gentle, steep = Stribeck(1.0, 1.5, 0.1), Stribeck(1.0, 3.0, 0.1)
    image = ImageMap(np.zeros((2, 2), np.uint8), gentle, steep, (0.0, 0.0), (0.1, 0.1))
    scene = Scene(gentle, (Region("image", RIGHT, image),))
    assert mobility_limit(scene) == pytest.approx(1.0 / 20.0)
    textured = Scene(gentle, (Region("ridges", RIGHT, steep, texture=Texture(amplitude=0.5)),))
    assert mobility_limit(textured) == pytest.approx(1.0 / 30.0)


def test_regions_that_are_far_apart_are_not_mixed() -> None:
    """Side by side these two fall; each by itself on a background with much viscosity does not."""
    one, other = Stribeck(1.0, 1.0, 0.02, 0.0), Stribeck(0.0, 8.0, 1.0, 10.0)
    flat = Stribeck(1.0, 1.0, 1.0, 60.0)
    near = Scene(flat, (Region("a", Circle((0.0, 0.0), 0.01), one), Region("b", Circle((0.02, 0.0), 0.01), other)))
    far = Scene(flat, (Region("a", Circle((0.0, 0.0), 0.01), one), Region("b", Circle((0.05, 0.0), 0.01), other)))
    assert mobility_limit(near) < mobility_limit(far)


def test_a_scene_that_is_too_steep_for_an_element_is_refused_and_says_where() -> None:
    scene = Scene(Stribeck(1.0, 1.5, 0.1), (Region("grit", RIGHT, Stribeck(1.0, 4.0, 0.1)),), name="steps")
    require_solvable(scene, 0.02)
    with pytest.raises(ConfigurationError, match=r"'steps': in region 'grit'.*30 N s/m.*condition 15"):
        require_solvable(scene, 0.05)


def test_in_front_of_a_spring_borders_are_wider_by_what_it_gives() -> None:
    scene = Scene(Coulomb(1.0), (Region("right", RIGHT, Coulomb(6.0)),), border=0.002)
    assert spread(scene) == 5.0
    assert fitted(scene, MasslessImpedance(Coulomb(1.0), 5000.0, 5.0)).border == pytest.approx(0.003)
    assert fitted(scene, InertialImpedance(Coulomb(1.0), 0.1, 5000.0, 5.0)).border == pytest.approx(0.0045)
    assert fitted(scene, CompliantAdmittance(Coulomb(1.0), 2.0, 5000.0, 5.0)).border == 0.002
