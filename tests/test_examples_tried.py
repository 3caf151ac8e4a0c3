"""The examples that Hypothesis tries: the same whichever modules are imported before."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers


def test_examples_do_not_depend_on_what_is_imported():
    assert len(providers._get_local_constants()) == 0


def test_no_folder_has_examples_of_its_own():
    """A profile that is loaded later holds for all that is collected after it, and hides the stage from `scaled`."""
    assert settings.get_current_profile_name() == os.environ.get("HAPTICS_EXAMPLES", "few")


@pytest.mark.skipif(os.environ.get("HAPTICS_EXAMPLES") == "search", reason="new examples are asked for")
def test_examples_are_the_same_in_every_run():
    assert settings().derandomize
    assert settings().database is None
