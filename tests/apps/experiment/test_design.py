"""Experiment files: complete designs, refusals with line and key, texts of participants, shipped examples."""

from __future__ import annotations

import tomllib
from dataclasses import fields

import pytest

from apps.experiment.design import read_design
from apps.experiment.screens import display
from apps.experiment.screens.messages import Show
from apps.experiment.sequence import Participant, TrialSequence
from apps.experiment.settings import ANSWERS, QUESTIONS, TextSettings
from apps.experiment.source import key_lines
from apps.experiment.trial import TASKS, Answer, TrialView
from haptics.errors import ConfigurationError
from tests.apps.experiment.designs import WEBER, changed, friction_file
from tests.apps.experiment.screens.test_display import Heard
from tests.processes import ROOT


def test_design_takes_session_settings_and_procedures_of_conditions(tmp_path):
    design = read_design(changed(tmp_path, "[session]\n", "[session]\nrate = 2000.0\n"))
    config = design.config(design.conditions[1], 2.5)
    assert (config.session.rate, config.law["force"], config.device) == (2000.0, 2.5, "virtual-joystick")
    assert design.procedure_of(design.conditions[1])["most_trials"] == 3
    assert design.procedure_of(design.conditions[0])["most_trials"] == 4


WRONG = [
    ("reference = 2.0", "reference = -2.0", "reference = -2.0", "conditions[1].reference"),
    ("reference = 2.0", 'reference = "2 N"', '"2 N"\nprocedure', "conditions[1].reference"),
    ('kind = "staircase"', 'kind = "stairs"', 'kind = "stairs"', "procedure.kind"),
    ("most_trials = 4", "most_trials = 0", "most_trials = 0", "procedure.most_trials"),
    ("{ most_trials = 3 }", "{ most_trials = 0 }", "procedure = {", "conditions[1].procedure.most_trials"),
    ("maximum = 2.0", "maximum = 20.0", "maximum = 20.0", "procedure.maximum"),
    ("rest = 0.4", "rests = 0.4", "rests = 0.4", "hand.rests"),
    ('name = "coulomb"', 'name = "coulom"', 'name = "coulom"', "law.name"),
    ('model = "C"', 'model = "A"', 'model = "A"', "session.model"),
    ('axis = "law.force"', 'axis = "law.mass"', 'axis = "law.mass"', "stimulus.axis"),
    ("strokes = 2", "strokes = 2.5", "strokes = 2.5", "exploration.strokes"),
    ("start = [-0.03, 0.0]", "start = [0.0]", "start = [0.0]", "exploration.start"),
    ('"2" = ["2", "right"]', '"2" = ["left"]', "keys = {", "response.keys.2"),
    ('"2" = ["2", "right"]', '"3" = ["3"]', "keys = {", "response.keys.3"),
    ("block = 5", "blok = 5", "blok = 5", "trials.blok"),
    ("[catch]", "[cach]", "[cach]", "cach"),
    ("easy = 0.2", "easy = 0.3\nnull = 0.25", "null = 0.25", "catch.null + catch.easy = 0.55"),
    ("seed = 7", "seed = ", "seed = ", ""),
    ("seed = 7", "seed = 7\nblind = 1", "blind = 1", "experiment.blind"),
    ('[session]\nmodel = "C"', '[session]\nclock = "off"', 'clock = "off"', "session.clock"),
    ('name = "2 N"', 'name = "1 N"', '"1 N"\nreference = 2.0', "conditions"),
    ("[stimulus]", "[stimulus]\nresolution = 0.05", "minimum = 0.02", "procedure.minimum"),
    ("least_speed = 0.025", "least_speed = 0.25", "least_speed = 0.25", "exploration.least_speed"),
    ("[catch]", "[analysis]\npercent = [20.0]\n[catch]", "percent = [20.0]", "analysis.percent"),
    ("[catch]", "[analysis]\nshape = 'weibul'\n[catch]", "shape = 'weibul'", "analysis.shape"),
    ("[catch]", "[analysis]\nproportion = 0.8\n[catch]", "proportion = 0.8", "analysis.proportion"),
    ("[catch]", "[analysis]\nplan = [1]\n[catch]", "plan = [1]", "analysis.plan"),
    ("reference = 1.0", "reference = -1.0", "reference = -1.0", "must be a finite number at least 0."),
]


@pytest.mark.parametrize(("old", "new", "mark", "key"), WRONG, ids=[new.split("\n")[-1] for _, new, _, _ in WRONG])
def test_invalid_setting_is_refused_with_line_and_key(tmp_path, old, new, mark, key):
    path = changed(tmp_path, old, new)
    with pytest.raises(ConfigurationError) as caught:
        read_design(path)
    line = path.read_text(encoding="utf-8").partition(mark)[0].count("\n") + 1
    assert str(caught.value).startswith(f"{path}:{line}: ") and key in str(caught.value)


def test_level_above_the_largest_force_is_refused_with_the_limit(tmp_path):
    with pytest.raises(ConfigurationError, match=r"the highest level on this reference is 8 N"):
        read_design(changed(tmp_path, "maximum = 2.0", "maximum = 8.5"))
    read_design(changed(tmp_path, "maximum = 2.0", "maximum = 8.0"))


def test_level_below_the_resolution_is_refused_with_the_increment(tmp_path):
    with pytest.raises(ConfigurationError, match=r"smallest increment on the pedestal of 1 is 0\.05"):
        read_design(changed(tmp_path, "[stimulus]", "[stimulus]\nresolution = 0.05"))


def test_resolution_defaults_to_the_data_sheet_of_the_device(tmp_path):
    """An emulated SideWinder has 255 steps of about 7 N: each is more than 0.02 N."""
    stick = 'name = "pid-joystick"\nemulated = true\nemulator = "sidewinder-ff2"'
    text = WEBER.replace('name = "virtual-joystick"', stick).replace("-0.03, 0.0], [0.03", "-0.02, 0.0], [0.02")
    message = r"weber\.toml:\d+: .*finer than pid-joystick renders in law\.force"
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_design(changed(tmp_path, text=text))
    step = float(str(caught.value).rpartition(" is ")[2].rstrip("."))
    assert 0.02 < step < 0.1
    read_design(changed(tmp_path, "minimum = 0.02", f"minimum = {1.01 * step}", text))


def detection(folder, reference):
    """Write a detection experiment on a joystick with a residual friction of 0.1 N."""
    (folder / "own.toml").write_text(friction_file(1.0, 1.0, viscosity=0.0, reach=(0.0, 0.0)), encoding="utf-8")
    text = WEBER.replace('"discrimination"', '"detection-2ifc"')
    text = text.replace('"virtual-joystick"', '"virtual-joystick"\nfriction_parameters = "own.toml"\n')
    text = text.replace("reference = 1.0", f"reference = {reference}")
    return changed(folder, "easy = 0.2", "easy = 0.2\neasy_level = 2.0", text)


def test_detection_below_the_residual_friction_is_refused_with_a_pedestal(tmp_path):
    with pytest.raises(ConfigurationError, match=r"conditions\.reference = 0\.1\b") as caught:
        read_design(detection(tmp_path, 0.0))
    assert ":3: " in str(caught.value)
    read_design(detection(tmp_path, 0.1))


EVERY_FORM = r"""top = 1 # a comment
dotted.key . "quoted.part" = 2

# ] [not] a table
[table] # [neither]
bare-1_2 = 6
'literal key' = '7'
"Über\"so\\" = "8"
"" = { x = 9, "y.z" = { deep = 9 } , list = [9, [9, 9]], empty = {}, none = [] }
signs = "10 ' # no comment } ] [t] \" \\"
literal = '11 " \'
array = [ 12, # ] a comment }
  13 # , ] }
  ,
  [15, 15,
   16] , { x = 16,  y = [16,
      17] },
]
flags = [
 "20" , "20" ]

[table.inner] # = 3
x = 23
[["array of tables"]]
x = 25
[["array of tables"]]
y = 27
[["array of tables".deep]]
z = 29
["array of tables".deep.deeper]
  numbers = [31, "31"]
"""


def entries(value, path=()):
    """Yield path and value of every key and element in nested tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (*path, name), inner
        yield from entries(inner, (*path, name))


def test_key_lines_finds_every_key_in_any_form():
    """Every value in the document begins with the number of its line."""
    found, document = key_lines(EVERY_FORM), dict(entries(tomllib.loads(EVERY_FORM)))
    assert found.keys() == document.keys()
    values = {path: value for path, value in document.items() if not isinstance(value, dict | list)}
    assert len(values) == 28
    assert {path: found[path] for path in values} == {path: int(str(one).split()[0]) for path, one in values.items()}
    assert [found[path] for path in (("table",), ("table", "inner"), ("table", "array"))] == [5, 22, 12]
    assert [found["array of tables", number] for number in (0, 1)] == [24, 26]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a.b.c = 1\na.b.d = 2", ("a", "b", "d"), 2),
        ("[a.b]\n\n[[a.c]]\nx = 1\n[[a.c]]\nx = 2\n[a.c.deep]\ny = 3", ("a", "c", 1, "deep", "y"), 8),
        ("[t]\nwhen = 1979-05-27 07:32:00 # x\nz = 1.5e3", ("t", "z"), 3),
        ('s = """four quotes: """"\nz = 1', ("z",), 2),
        ("z = 0x1f", ("z",), 1),
        ('s = """\n\nsaid \\""" "a", \\\\ \\\n  [t]"""\nz = 1', ("z",), 5),
        ("s = '''\n] }\n# a\\''' # b\nz = 1", ("z",), 4),
    ],
)
def test_key_lines_handles_rare_forms(text, path, line):
    tomllib.loads(text)
    assert key_lines(text)[path] == line


GERMAN = (ROOT / "examples/experiments/texts/weber_friction.toml").read_text(encoding="utf-8")
INTO_GERMAN = 'name = "weber"\ntexts = "words.toml"\nlanguage = "de"'


def german(folder, words=GERMAN, text=WEBER):
    (folder / "words.toml").write_text(words, encoding="utf-8")
    return changed(folder, 'name = "weber"', INTO_GERMAN, text)


def test_participant_screen_shows_only_configured_texts(tmp_path):
    german_words = GERMAN.replace('answers = { "1"', 'answers = { done = "fertig", "1"')
    keys = WEBER.replace('["1", "left"]', '["space"]').replace('["2", "right"]', '["return"]')
    file = german(tmp_path, german_words, keys)
    design, participant = read_design(file), Heard()
    texts, screen = design.texts, display.Display(design, participant, None, code="P01", session=1, blocks=2)
    plan = TrialSequence(design, Participant("P01", 1, 0, 7)).next()
    screen.page(1, 1, texts.instructions[0])
    screen.practice(texts.practice)
    screen.rest(0.0, texts.rest)
    for number in (0, 1):
        for show in (screen.park, screen.interval, screen.gap):
            show(plan, number)
    screen.prompt(plan)
    screen.entry("12")
    for correct in (True, False):
        screen.feedback(correct)
    screen.pause()
    screen.announce_motion(93.0)
    screen.measures(0.5)
    screen.measured("for the experimenter")
    screen.finish(texts.end)
    allowed = {str(getattr(texts, one.name)) for one in fields(texts)}
    allowed |= {*texts.answers.values(), *texts.keys.values(), *texts.instructions, ""}
    allowed.add(texts.let_go.replace("{seconds}", "93"))
    shows = [message for message in participant.told if isinstance(message, Show)]
    for show in shows:
        words = (show.title, show.text, show.hold, *(word for key in show.keys for word in (key.words, key.cap)))
        assert set(words) <= allowed, show.kind


def test_missing_translation_is_named_with_file_and_line(tmp_path):
    file = german(tmp_path, GERMAN.replace('right = "Richtig"\n', ""))
    with pytest.raises(ConfigurationError, match=r"words\.toml:\d+: .*right.*'de'.*would read English"):
        read_design(file)
    file = german(tmp_path, GERMAN.replace(', "2" = "im zweiten"', "") + "\n[fr]\n")
    with pytest.raises(ConfigurationError, match=r"answers\.2"):
        read_design(file)


def test_answer_texts_are_complete_and_unknown_ones_refused(tmp_path):
    assert {answer for task in TASKS.values() for answer in task.responses} <= set(ANSWERS)
    text = WEBER + '\n[texts]\nanswers = { "3" = "third" }\n'
    with pytest.raises(ConfigurationError, match=r"weber\.toml:\d+: .*texts\.answers\.3"):
        read_design(changed(tmp_path, text=text))
    with pytest.raises(ConfigurationError, match=r"texts\.keys"):
        TextSettings(keys={"space": ""})


def test_english_texts_are_the_default(tmp_path):
    design = read_design(changed(tmp_path))
    assert QUESTIONS[design.experiment.task] == "Which one resisted more?"
    assert (design.texts.answer_label("1"), design.texts.key("space")) == ("first", "Space")


@pytest.mark.parametrize(
    ("task", "level", "order", "response", "correct"),
    [
        ("discrimination", 0.2, 2, "2", True),
        ("discrimination", 0.2, 2, "1", False),
        ("discrimination", 0.0, 1, "1", True),  # an equal pair: right by chance, half of the time
        ("detection-2ifc", 0.2, 1, "2", False),
        ("detection", 0.2, None, "yes", True),
        ("detection", 0.0, None, "yes", False),
        ("detection", 0.0, None, "no", True),
        ("same-different", 0.2, 2, "same", False),
        ("same-different", 0.0, 2, "same", True),
        ("adjustment", 0.2, None, 3.1, None),
        ("estimation", 0.2, None, 10.0, None),
    ],
)
def test_answer_is_scored(task, level, order, response, correct):
    trial = TrialView(task, "law.force", 1.0, level, (1.0, 1.0 + level)[: TASKS[task].intervals], order)
    assert Answer(response, 0.5).correct(trial) is correct


KINDS = "experiments/*.toml", "replications/*.toml", "studies/*/study.toml"
FILES = sorted(file for kind in KINDS for file in (ROOT / "examples").glob(kind))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_shipped_experiment_is_valid(file):
    assert read_design(file).conditions
    text = file.read_text(encoding="utf-8")
    assert key_lines(text).keys() == dict(entries(tomllib.loads(text))).keys()
