"""The help of ``haptics calibrate``."""

import argparse

import pytest

from apps.calibrate import command


@pytest.mark.parametrize("kind", command.KINDS)
def test_a_description_is_a_sentence_with_one_verb(kind: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    (kinds,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))
    description = kinds[kind].description
    verb, follows = description.split()[:2]
    assert verb in {"Calibrate", "Compare", "Identify", "Select", "Validate"}
    assert follows in {"a", "an", "parameters", "the"}
    assert description.endswith(".")
