"""What a participant reads comes from the experiment's file, all of it, in their own language."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.design.texts import ANSWERS, TextSettings
from apps.experiment.engine.course import Course, Participant
from apps.experiment.screens import Show, audience
from apps.experiment.trial import TASKS
from haptics.errors import ConfigurationError
from tests.apps.experiment.design.designs import WEBER, changed
from tests.apps.experiment.screens.test_audience import Heard
from tests.processes import ROOT

GERMAN = (ROOT / "examples/experiments/texts/weber_friction.toml").read_text(encoding="utf-8")
INTO_GERMAN = 'name = "weber"\ntexts = "words.toml"\nlanguage = "de"'


def german(folder: Path, words: str = GERMAN, text: str = WEBER) -> Path:
    (folder / "words.toml").write_text(words, encoding="utf-8")
    return changed(folder, 'name = "weber"', INTO_GERMAN, text)


def shown(file: Path) -> list[Show]:
    """Return everything that a participant of a session can be shown."""
    design, participant = read_design(file), Heard()
    screen = audience.ScreenAudience(design, participant, None, code="P01", session=1, blocks=2)
    plan = Course(design, Participant("P01", 1, 0, 7)).next()
    assert plan is not None
    screen.page(1, 1, design.texts.instructions[0])
    screen.practice(design.texts.practice)
    screen.rest(0.0, design.texts.rest)
    for number in (0, 1):
        screen.park(plan, number)
        screen.interval(plan, number)
        screen.gap(plan, number)
    screen.ask(plan)
    screen.entry("12")
    screen.feedback(True)
    screen.feedback(False)
    screen.pause("participant")
    screen.let_go(93.0)
    screen.measures(0.5)
    screen.measured("for the experimenter")
    screen.finish(design.texts.end)
    return [message for message in participant.told if isinstance(message, Show)]


def test_no_word_on_the_participants_screen_is_english_in_a_german_session(tmp_path: Path) -> None:
    words = GERMAN.replace('answers = { "1"', 'answers = { done = "fertig", "1"')
    file = german(tmp_path, words, WEBER.replace('["1", "left"]', '["space"]').replace('["2", "right"]', '["return"]'))
    texts = read_design(file).texts
    allowed = {str(getattr(texts, one.name)) for one in fields(texts)}
    allowed |= {*texts.answers.values(), *texts.keys.values(), *texts.instructions, ""}
    allowed.add(texts.let_go.replace("{seconds}", "93"))
    for show in shown(file):
        told = (show.title, show.text, show.hold, *(word for key in show.keys for word in (key.words, key.cap)))
        assert set(told) <= allowed, show.kind


def test_the_audience_has_no_words_of_its_own_for_participants() -> None:
    """Each text of a `Show` is a variable: nothing quoted stands where a participant reads."""
    tree = ast.parse(Path(audience.__file__).read_text(encoding="utf-8"))
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "replace"]
    quoted = [
        keyword.value.value
        for call in calls
        for keyword in call.keywords
        if keyword.arg in ("title", "text", "hold") and isinstance(keyword.value, ast.Constant)
    ]
    assert calls and not quoted


def test_what_is_missing_in_a_language_is_named_with_file_and_line(tmp_path: Path) -> None:
    file = german(tmp_path, GERMAN.replace('right = "Richtig"\n', ""))
    with pytest.raises(ConfigurationError, match=r"words\.toml:\d+: .*right.*'de'.*would read English"):
        read_design(file)
    file = german(tmp_path, GERMAN.replace(', "2" = "im zweiten"', "") + "\n[fr]\n")
    with pytest.raises(ConfigurationError, match=r"answers\.2"):
        read_design(file)


def test_every_answer_has_a_name_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    assert {answer for task in TASKS.values() for answer in task.responses} <= set(ANSWERS)
    text = WEBER + '\n[texts]\nanswers = { "3" = "third" }\n'
    with pytest.raises(ConfigurationError, match=r"weber\.toml:\d+: .*texts\.answers\.3"):
        read_design(changed(tmp_path, text=text))
    with pytest.raises(ConfigurationError, match=r"texts\.keys"):
        TextSettings(keys={"space": ""})


def test_english_needs_nothing(tmp_path: Path) -> None:
    design = read_design(changed(tmp_path))
    assert design.texts.ask(design.experiment.task) == "Which one resisted more?"
    assert (design.texts.answer("1"), design.texts.key("space")) == ("first", "Space")


def test_the_german_example_can_be_read(tmp_path: Path) -> None:
    source = ROOT / "examples/experiments/weber_friction.toml"
    for name in ("data", "experiments"):
        (tmp_path / name).symlink_to(ROOT / "examples" / name)
    file = tmp_path / "experiments" / source.name
    text = source.read_text(encoding="utf-8").replace('language = "en"', 'language = "de"')
    (tmp_path / "own").mkdir()
    copy = tmp_path / "own" / source.name
    copy.write_text(text, encoding="utf-8")
    (tmp_path / "own" / "texts").symlink_to(file.parent / "texts")
    assert read_design(copy).texts.right == "Richtig"
