"""The shipped studies are complete: English and German texts, consent, power and preregistration."""

import pytest

from apps.experiment.design import read_design
from apps.experiment.preregister import as_markdown, preregistration, read_power
from tests.processes import ROOT

STUDIES = sorted((ROOT / "examples/studies").glob("*/study.toml"))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.name)
def test_study_has_everything_for_a_preregistration(file):
    design = read_design(file)
    facts = preregistration(design, read_power(file.with_name("power.json")), None)
    assert facts["missing"] == [] and design.consent_form is not None and design.forms
    assert facts["experiment"] == facts["power"]["experiment"]
    assert f"Planned: {facts['power']['enough']} participants." in as_markdown(facts)


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.name)
def test_stored_power_belongs_to_the_file(file):
    """After a change: ``haptics experiment power study.toml --json > power.json``."""
    stored = read_power(file.with_name("power.json"))
    found = stored | {"participants": [row["participants"] for row in stored["power"]]}
    table = read_design(file).tables["power"]
    assert table | {name: found[name] for name in table.keys() - {"first"}} == table


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.parent.name)
def test_study_is_complete_in_german(file, tmp_path):
    (tmp_path / "texts.toml").write_bytes(file.with_name("texts.toml").read_bytes())
    german = tmp_path / "study.toml"
    german.write_text(file.read_text(encoding="utf-8").replace('language = "en"', 'language = "de"'), encoding="utf-8")
    english, translated = read_design(file), read_design(german)
    for before, after in zip(
        (english.consent_form, *english.forms), (translated.consent_form, *translated.forms), strict=True
    ):
        for one, other in zip(before.items, after.items, strict=True):
            assert one.name == other.name and one.text != other.text
    assert english.texts.instructions != translated.texts.instructions
    assert english.texts.groups.keys() == translated.texts.groups.keys()
