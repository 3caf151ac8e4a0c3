"""Forms: settings, answers by keys and mouse, scores, simulated answers, and sessions that are interrupted."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.export import export_sessions
from apps.experiment.export.forms import forms_of
from apps.experiment.forms.catalogue import TLX_SCALES
from apps.experiment.forms.dialog import FormDialog
from apps.experiment.forms.forms import ConsentSettings, consent_form, form_of, simulated_answers
from apps.experiment.journal import read_journal, replay
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import trial_seed
from apps.experiment.screens.display import Display
from apps.experiment.session.presentation import Simulated
from apps.experiment.session.running import Request, begin, reopen, resume_session
from apps.experiment.session.session import ExperimentSession
from apps.experiment.session.stages import OfflineStage
from apps.experiment.settings import TextSettings
from haptics.errors import ConfigurationError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.session.running import simulate
from tests.processes import ROOT

SHORT = (
    WEBER.replace("{ most_trials = 3 }", "{}")
    .replace("most_trials = 4", "most_trials = 2")
    .replace("block = 5", "block = 2")
)

OWN = """
[[forms]]
name = "comfort"
when = "between"
items = [
    { name = "tired", text = "Tired?", points = 5 },
    { name = "fit", text = "Fit?", points = 5, required = false },
]
scores = { ease = { reverse = ["tired"] } }
"""

ITEMS = [
    {"name": "info", "kind": "page", "text": "Some questions."},
    {"name": "agree", "kind": "likert", "text": "Agree?", "points": 5},
    {"name": "pain", "kind": "analogue", "text": "Pain?", "steps": 20, "required": False},
    {"name": "hand", "kind": "choice", "text": "Hand?", "options": {"r": "right", "l": "left"}},
    {"name": "age", "kind": "number", "text": "Age?", "minimum": 18, "maximum": 99, "whole": True},
    {"name": "remark", "kind": "text", "text": "Remark?", "longest": 10, "required": False},
]


def all_kinds():
    return form_of({"name": "all", "items": ITEMS}, {}, "en")


def dialog_of(form, **answers):
    return FormDialog(form, form.items, TextSettings(), answers)


def press(dialog, *keys):
    for key in keys:
        dialog.press(key, 0.0)
        dialog.release(key)


# --- answers ---


def test_every_item_is_answered_by_keyboard_only():
    dialog = dialog_of(all_kinds())
    press(dialog, "return", "4", "left", "return", "right", "right", "return", "down", "down", "return")
    dialog.type("4")
    dialog.type("2x")
    press(dialog, "return")
    dialog.type("no remarks")
    press(dialog, "backspace", "return")
    assert dialog.done
    assert dialog.answers == {"agree": 3, "pain": 55.0, "hand": "l", "age": 42, "remark": "no remark"}
    assert dialog.take_confirmed() == ["agree", "pain", "hand", "age", "remark"] and not dialog.take_confirmed()


def test_every_scale_and_choice_is_answered_with_the_mouse():
    dialog = dialog_of(all_kinds())
    press(dialog, "space")
    dialog.pick(9)  # not there
    dialog.pick(4)
    press(dialog, "enter")
    dialog.place_at(0.333)
    press(dialog, "return")
    dialog.pick(0)
    assert dialog.answers == {"agree": 5, "pain": 35.0, "hand": "r"}


def test_required_item_is_not_left_out_and_optional_one_is():
    dialog = dialog_of(all_kinds())
    press(dialog, "return", "return")
    assert dialog.item.name == "agree" and dialog.contents()["item"].alert == "Please give an answer."
    press(dialog, "1")
    assert dialog.contents()["item"].alert == ""
    press(dialog, "return", "return")
    assert dialog.item.name == "hand" and dialog.answers == {"agree": 1, "pain": None}


def test_digit_of_a_keyboard_that_needs_the_shift_key_chooses():
    """The name of such a key is that of another character; its text is the digit."""
    dialog = dialog_of(all_kinds())
    press(dialog, "return", "178")
    for text in ("2", "0", "²", "12"):
        dialog.type(text)
    press(dialog, "ampersand", "return")
    assert dialog.answers == {"agree": 2}


def test_labels_of_points_are_in_the_order_of_the_points():
    options = {str(number): f"label {number}" for number in (10, 3, 2, 1, *range(4, 10))}
    item = {"name": "x", "text": "X?", "points": 10, "options": options}
    dialog = dialog_of(form_of({"name": "f", "items": [item]}, {}, "en"))
    assert dialog.contents()["item"].labels == tuple(f"label {number}" for number in range(1, 11))


def test_refused_consent_is_not_asked_about_sharing():
    settings = ConsentSettings(version="1", date="2026-05-01", text="Page", sharing="Publish?")
    refused, agreed = (dialog_of(consent_form(settings, {}, "en")) for _ in range(2))
    press(refused, "space", "2", "return")
    assert refused.done and refused.answers == {"agreed": "no"}
    press(agreed, "space", "1", "return")
    assert not agreed.done and agreed.item.name == "sharing"


@pytest.mark.parametrize("typed", ["17", "99.5", "100", "-", "1e3", "..", "4" * 400, ""])
def test_number_outside_its_range_is_refused_with_the_range(typed):
    form = form_of({"name": "n", "items": [ITEMS[4]]}, {}, "en")
    dialog = dialog_of(form)
    dialog.type(typed)
    press(dialog, "return")
    # letters are not typed into a number: 1e3 is 13
    alert = "Please enter a whole number from 18 to 99." if typed else "Please give an answer."
    assert not dialog.done and dialog.contents()["item"].alert == alert


def test_backspace_goes_back_to_the_earlier_answer_and_held_backspace_only_deletes():
    dialog = dialog_of(all_kinds(), agree=2, pain=40.0, hand="l", age=30)
    press(dialog, "return", "return", "return", "return")
    assert dialog.item.name == "age" and dialog.contents()["item"].entry == "30"
    dialog.press("backspace", 10.0)
    assert not dialog.repeat(10.2)
    assert [dialog.repeat(10.5), dialog.repeat(10.6)] == [True, True]
    assert dialog.item.name == "age" and dialog.contents()["item"].entry == ""
    dialog.release("backspace")
    press(dialog, "backspace", "backspace")
    assert dialog.item.name == "pain" and dialog.contents()["item"].share == 0.4


def test_held_arrow_moves_a_continuous_scale():
    form = form_of({"name": "v", "items": [{"name": "x", "kind": "analogue", "text": "X?"}]}, {}, "en")
    dialog = dialog_of(form)
    dialog.press("right", 0.0)
    assert dialog.answers["x"] == 50.0
    for time in np.arange(0.4, 6.0, 0.05):
        dialog.repeat(time)
    assert dialog.answers["x"] == 100.0


def test_invalid_earlier_answers_are_ignored():
    dialog = dialog_of(all_kinds(), agree=9, pain="much", hand="x", age=True, remark="x" * 11)
    assert dialog.answers == {}


@pytest.mark.parametrize("seed", range(5))
def test_simulated_answers_are_permitted(seed):
    for form in (
        all_kinds(),
        *(form_of({"name": "f", "use": use}, {}, "de") for use in ("nasa-tlx-weighted", "demographic")),
    ):
        answers = simulated_answers(form, np.random.default_rng(seed))
        assert [item.name for item in form.asked] == list(answers)
        assert all(item.fits(answers[item.name]) for item in form.asked)


# --- scores ---


def test_nasa_tlx_has_the_scores_of_hart_and_staveland():
    form = form_of({"name": "tlx", "use": "nasa-tlx-weighted"}, {}, "en")
    ratings = dict(zip(TLX_SCALES, (30.0, 15.0, 60.0, 40.0, 70.0, 55.0), strict=True))
    pairs = [item.name for item in form.items if item.kind == "choice"]
    assert len(pairs) == 15 and len(form.items) == 21
    # of each pair the scale that is later in this order wins: 0 to 5 wins
    order = ["physical", "mental", "performance", "frustration", "temporal", "effort"]
    answers = ratings | {name: max(name.split("_"), key=order.index) for name in pairs}
    scores = form.score(answers)
    weights = {name: float(order.index(name)) for name in TLX_SCALES}
    assert scores == {
        "raw": pytest.approx(270 / 6),
        "weighted": pytest.approx((30 * 1 + 40 * 2 + 55 * 3 + 60 * 4 + 70 * 5) / 15),
        **{f"weight_{name}": weight for name, weight in weights.items()},
    }
    assert form.score(answers | {"effort": None})["weighted"] is None
    assert form.score({**answers, pairs[0]: None})["weighted"] is None
    arranged = form.arranged(np.random.default_rng(1))
    assert arranged[:6] == form.items[:6] and arranged != form.items
    assert sorted(arranged, key=form.items.index) == list(form.items)


def test_own_score_reverses_items_and_needs_all_answers():
    table = {
        "name": "f",
        "items": ITEMS,
        "scores": {"s": {"items": ["agree", "pain"], "rule": "sum", "reverse": ["agree"]}},
    }
    form = form_of(table, {}, "en")
    assert form.score({"agree": 2, "pain": 40.0}) == {"s": 4 + 40}
    assert form.score({"agree": 2, "pain": None}) == {"s": None}


# --- settings ---


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "comfort"', 'name = "Comfort!"', r"weber.toml:57: forms\[0\].name: forms.name = 'Comfort!'"),
        ('name = "comfort"', 'name = "consent"', "not 'consent'"),
        ('when = "between"', 'when = "during"', r"weber.toml:58: .*one of before, between, after"),
        ("points = 5", "points = 99", r"items.points = 99"),
        ('reverse = ["tired"]', 'reverse = ["hungry"]', "'hungry' is no numerical item"),
        ('reverse = ["tired"]', 'items = ["fit"], reverse = ["tired"]', "'tired' is not in scores.items"),
        ('reverse = ["tired"]', 'items = ["fit", "fit"]', r"scores.items = \['fit', 'fit'\]: an item is there twice"),
        ("scores = {", "use = 'nasa-tlx'\nscores = {", "and not both"),
        ('name = "fit"', 'name = "tired"', "two of that name"),
        ('name = "fit"', 'name = "score_x"', "column of every form"),
        ("ease", "tired", "that no item has"),
    ],
)
def test_wrong_setting_is_refused_with_its_line(old, new, words, tmp_path):
    assert old in OWN
    with pytest.raises(ConfigurationError, match=words):
        read_design(changed(tmp_path, text=WEBER + OWN.replace(old, new, 1)))


def test_shipped_form_needs_texts_in_another_language():
    table = {"name": "tlx", "use": "nasa-tlx"}
    assert form_of(table, {}, "de-AT").title == "Beanspruchung"
    with pytest.raises(ConfigurationError, match=r"in the language 'fr' give texts.forms.tlx: items.mental.*title"):
        form_of(table, {}, "fr")
    words = {"title": "Charge", "items": {name: {"text": name.upper()} for name in TLX_SCALES}}
    assert form_of(table, words, "fr").items[0].text == "MENTAL"
    with pytest.raises(ConfigurationError, match=r"items.sleep: is no item"):
        form_of(table, {"items": {"sleep": {"text": "?"}}}, "en")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"version": "1", "date": "1 May", "text": "?"}, "consent.date = '1 May'"),
        ({"version": "1", "date": "2026-05-01"}, "consent.text is missing"),
        ({"date": "2026-05-01"}, "consent.version is missing"),
    ],
)
def test_wrong_consent_is_refused(table, words):
    with pytest.raises(ConfigurationError, match=words):
        ConsentSettings(**table)


def test_consent_has_the_language_of_the_file():
    settings = ConsentSettings(version="1", date="2026-05-01", text=["Seite 1", "Seite 2"], sharing="Daten?")
    form = consent_form(settings, {}, "de")
    assert [item.kind for item in form.items] == ["page", "page", "choice", "choice"]
    assert form.items[2].options == {"yes": "Ich bin einverstanden", "no": "Ich bin nicht einverstanden"}
    with pytest.raises(ConfigurationError, match=r"consent.title is missing in the language 'fr'"):
        consent_form(settings, {}, "fr")


# --- sessions ---


def events(place, *names):
    state = replay(read_journal(place.journal).records)
    return [one for one in state.events if one["name"] in names]


def test_interrupted_session_asks_the_missing_forms_only(tmp_path):
    text = SHORT + OWN + '\n[[forms]]\nname = "tlx"\nuse = "nasa-tlx"\nwhen = "after"\n'
    _, place = simulate(changed(tmp_path, text=text), tmp_path / "out")
    lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)
    stamps = ("number", "utc", "monotonic_ns")
    whole = [{k: v for k, v in one.items() if k not in stamps} for one in events(place, "form-completed")]
    assert [(one["form"], one["after_blocks"]) for one in whole] == [("comfort", 1), ("tlx", 2)]
    first, last = [k for k, line in enumerate(lines) if '"form-completed"' in line]
    for kept in (first, last + 1):  # killed before the first form, and after the last one
        place.journal.write_text("".join(lines[:kept]), encoding="utf-8")
        resume_session(place.folder)
        again = [{k: v for k, v in one.items() if k not in stamps} for one in events(place, "form-completed")]
        assert again == whole


def test_example_stores_consent_and_exports_scores(tmp_path):
    _, place = simulate(ROOT / "examples/experiments/questionnaires.toml", tmp_path / "out")
    (consent,) = events(place, "consent")
    assert (consent["version"], consent["date"], consent["agreed"], consent["language"]) == (
        "1.0",
        "2026-11-01",
        True,
        "de",
    )
    for to in ("csv", "psych-ds"):
        export_sessions([tmp_path / "out"], tmp_path / to, to)
    with open(tmp_path / "csv" / "forms.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["form"] for row in rows} == {"person", "comfort", "workload", "closing"}
    (weighted,) = [float(row["number"]) for row in rows if row["item"] == "weighted"]
    assert 0.0 <= weighted <= 100.0
    book = (tmp_path / "csv" / "forms_codebook.csv").read_text(encoding="utf-8")
    assert "Wie alt sind Sie?" in book and "weight_effort" in book
    described = json.loads((tmp_path / "psych-ds/dataset_description.json").read_text())["variableMeasured"]
    (table,) = (tmp_path / "psych-ds/data").glob("*_content-forms_data.csv")
    assert set(table.read_text().splitlines()[0].split(",")) <= {one["name"] for one in described}


def test_shipped_form_in_a_language_of_the_file_is_in_the_codebook():
    header = {"design": {"experiment": {"language": "fr"}, "forms": [{"name": "tlx", "use": "nasa-tlx"}]}}
    (form,) = forms_of(SimpleNamespace(header=header)).values()
    assert [item.range for item in form.asked] == [(0.0, 100.0)] * 6


def test_hostile_form_events_are_ignored_by_exports(tmp_path):
    _, place = simulate(changed(tmp_path, text=SHORT), tmp_path / "out")
    lines = place.journal.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]
    event = {"record": "event", "utc": "2026", "monotonic_ns": 1, "name": "form-completed", "after_blocks": 1}
    bad = [("../x", {}), ("f", {"a": {"b": 1}}), ("f", {"../x": 1}), (3, {}), ("f", [])]
    for number, (form, answers) in enumerate(bad, len(lines)):
        lines.append(json.dumps({**event, "number": number, "form": form, "answers": answers, "scores": {}}) + "\n")
    place.journal.write_text("".join(lines), encoding="utf-8")
    export_sessions([tmp_path / "out"], tmp_path / "csv", "csv")
    assert not list((tmp_path / "csv").glob("*forms*"))


class Answering:
    """Questioner that confirms given answers, and may be interrupted after a number of them."""

    def __init__(self, answers, interrupted_after=None):
        self.answers, self.left, self.shown = answers, interrupted_after, []

    def fill(self, form, items, answers, keep):
        self.shown.append((form.name, dict(answers)))
        for item in form.asked:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left = None if self.left is None else self.left - 1
            keep(item.name, self.answers[item.name])
        return {item.name: self.answers[item.name] for item in form.asked}


CONSENT = '\n[consent]\nversion = "2"\ndate = "2026-11-01"\ntext = "Information"\nsharing = "Publish?"\n'


def attended(design, journal, who, questioner):
    """Run a session with a questioner for the forms and a simulated observer for the trials."""

    def respondent(sequence):
        return Simulated(make_observer({}, seed=trial_seed(1, "P01", 0, 0, 1)), sequence)

    session = ExperimentSession(
        design,
        who,
        journal,
        respondent=respondent,
        stage=OfflineStage,
        display=Display(design),
        again=True,
        questioner=questioner,
    )
    return session.run()


def test_refused_consent_ends_the_session_before_anything_else(tmp_path):
    design = read_design(changed(tmp_path, text=SHORT + OWN + CONSENT))
    journal, who = begin(design, Request("P01", 1, 7, tmp_path / "out", {}, simulated=False))
    questioner = Answering({"agreed": "no", "sharing": "no"})
    with journal:
        assert attended(design, journal, who, questioner) == "consent refused"
    assert questioner.shown == [("consent", {})]
    assert [one["record"] for one in journal.records] == ["header", "event", "event", "event", "end"]
    assert journal.records[3]["agreed"] is False and journal.records[3]["sharing"] is False


def test_interrupted_form_of_a_person_keeps_confirmed_answers(tmp_path):
    design = read_design(changed(tmp_path, text=SHORT + OWN.replace("between", "before") + CONSENT))
    journal, who = begin(design, Request("P01", 1, 7, tmp_path / "out", {}, simulated=False))
    answers = {"agreed": "yes", "sharing": "no", "tired": 2, "fit": None}
    with journal, pytest.raises(KeyboardInterrupt):
        attended(design, journal, who, Answering(answers, interrupted_after=3))
    design, journal, who = reopen(journal.place.folder)
    questioner = Answering(answers)
    with journal:
        assert attended(design, journal, who, questioner) == "completed"
    assert questioner.shown == [("comfort", {"tired": 2})], "the consent is not asked again"
    (form,) = events(journal.place, "form-completed")
    assert form["answers"] == {"tired": 2, "fit": None} and form["scores"] == {"ease": None}
