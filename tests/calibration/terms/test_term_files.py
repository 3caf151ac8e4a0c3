"""Models of terms, written and read back."""

import numpy as np
import pytest

from calibration.terms.files import read_term_file, write_term_file
from calibration.terms.model import Fitted, TermModel
from calibration.terms.selection import select_terms
from calibration.terms.terms import make_term
from haptics.errors import ConfigurationError
from tests.calibration.simulated_joints import joint


def test_a_model_that_was_read_back_predicts_the_same(tmp_path):
    seen = joint(inertia=-8.0)
    model = select_terms(seen).model
    write_term_file(tmp_path / "m.toml", {"knee": model}, {"method": "test"})
    again = read_term_file(tmp_path / "m.toml")["knee"]
    assert np.array_equal(again.predict(seen), model.predict(seen))
    assert [one.high.tolist() for one in again.fitted] == [one.high.tolist() for one in model.fitted]


def test_every_term_can_be_kept_and_units_are_those_of_the_joint(tmp_path):
    names = {"pose": 2, "ripple": 2, "stribeck": 1, "load_viscosity": 1, "cubic_viscosity": 1, "inertia": 1, "load": 1}
    fitted = tuple(
        Fitted(make_term(name, 0.1 if name in {"ripple", "stribeck"} else None), *np.full((3, count), 2.0))
        for name, count in names.items()
    )
    for rotary in (True, False):
        write_term_file(tmp_path / "m.toml", {"1": TermModel(fitted, rotary)}, {})
        assert read_term_file(tmp_path / "m.toml")["1"].rotary is rotary
        text = (tmp_path / "m.toml").read_text()
        assert ("coefficient_kgm2" in text, "scale_m_per_s" in text) == (rotary, not rotary)


GOOD = "[joint.1.coulomb]\nscale_rad_per_s = 0.1\ncoefficient_nm = [3.0]\ninterval_95_nm = [[2.0, 4.0]]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"there is no table \[joint.NAME\]"),
        ("[joint", "is no TOML"),
        (GOOD.replace("coulomb", "coulom"), "Did you mean 'coulomb'"),
        (GOOD.replace("coefficient_nm", "coefficient_n"), "unknown coulomb key 'coefficient_n'"),
        (GOOD.replace("[3.0]", "[3.0, 1.0]"), "must be finite numbers in the shape"),
        (GOOD.replace("[3.0]", '["x"]'), "coulomb.coefficient_nm is missing, or not made of numbers"),
        (GOOD.replace("scale_rad_per_s = 0.1\n", ""), "the scale of term"),
        (GOOD.replace("0.1", "-0.1"), "must be a number above 0"),
        ("[joint]\n1 = 2\n", "must be a table"),
        ("[joint.1]\nrotary = 3\n", "rotary"),
    ],
)
def test_a_file_that_is_wrong_is_said(tmp_path, text, words):
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read_term_file(tmp_path / "m.toml")


def test_the_good_file_of_these_is_good(tmp_path):
    (tmp_path / "m.toml").write_text(GOOD)
    assert read_term_file(tmp_path / "m.toml")["1"].of("coulomb").values == [3.0]
    assert read_term_file(tmp_path / "m.toml")["1"].of("viscosity") is None
