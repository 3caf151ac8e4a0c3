"""Conditions from factors and from CSV files: combinations, errors with their place, resumption, tables, report."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from apps.experiment.design import read_design
from apps.experiment.export import export_sessions
from apps.experiment.preregister import as_markdown, preregistration
from apps.experiment.report.analysis import ConditionResult, Difference, PersonResult
from apps.experiment.report.data import read_experiment
from apps.experiment.report.factors import analyse_effects
from apps.experiment.report.page import effect_table
from apps.experiment.session.running import Request, begin, reopen, run_session
from apps.experiment.settings import AnalysisSettings
from calibration.psychometric import Estimate
from haptics.errors import ConfigurationError, RecordingError
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.test_report import QUEST, design, write_session
from tests.processes import ROOT

LISTED = WEBER[WEBER.index("[[conditions]]") : WEBER.index("[procedure]")]

FACTORS = """\
[factors]
exclude = [{ load = "heavy", damping = "high" }]

[factors.load]
light = { reference = 1.0 }
heavy = { reference = 2.0, procedure = { most_trials = 3 } }

[factors.damping]
low = { element = { damping = 2.0 } }
high = { element = { damping = 8.0 } }

"""

CSV = """\
name,reference,procedure.most_trials,element.damping,factors.load
a,1.0,,2,light
"b, slow",2,3,8,heavy
"""


def with_factors(folder, old="", new=""):
    """Write the experiment with factors, in which `old` is replaced by `new`; return the file."""
    return changed(folder, old, new, WEBER.replace(LISTED, FACTORS))


def with_csv(folder, text=CSV):
    """Write the experiment with a CSV file of conditions; return its file."""
    (folder / "conditions.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return changed(folder, text='conditions = "conditions.csv"\n' + WEBER.replace(LISTED, ""))


def test_levels_of_factors_multiply_into_conditions(tmp_path):
    design = read_design(with_factors(tmp_path))
    assert [one.name for one in design.conditions] == ["light, low", "light, high", "heavy, low"]
    light, high, heavy = design.conditions
    assert (light.reference, high.element, heavy.procedure) == (1.0, {"damping": 8.0}, {"most_trials": 3})
    assert heavy.factors == {"load": "heavy", "damping": "low"}
    assert design.config(high, 1.0).element["damping"] == 8.0


WRONG_FACTORS = [
    ('load = "heavy", ', 'load = "heavi", ', "exclude", "'heavi'"),
    ('load = "heavy", ', 'loud = "heavy", ', "exclude", "'loud'"),
    ('{ load = "heavy", damping = "high" }', '{ damping = ["high", "low"] }', "exclude", "every combination"),
    ('load = "heavy", ', 'load = [["heavy"]], ', "exclude", "level of load"),
    ('[{ load = "heavy", damping = "high" }]', "[3]", "exclude", "list of tables"),
    ("light = { reference = 1.0 }", "light = { reference = -1.0 }", "light =", "reference = -1.0"),
    ("light = { reference = 1.0 }", "light = { referense = 1.0 }", "light =", "'reference'"),
    ("light = { reference = 1.0 }", "light = 1.0", "light =", "must be a table"),
    ("{ most_trials = 3 }", "{ most_trials = 0 }", "heavy =", "most_trials"),
    ("{ most_trials = 3 }", "{ maximum = 20.0 }", "heavy =", "highest level"),
    ("high = { element", "high = { reference = 3.0, element", "high =", "'load' sets reference already"),
    ("[factors.damping]", "[factors.Damping]", "[factors.Damping]", "small letters"),
    ("high = { element = { damping = 8.0 } }", "", "[factors.damping]", "two or more levels"),
    ("[factors]\n", "[[conditions]]\nname = 'a'\n[factors]\n", "[factors]", "either"),
    ("low = { element = { damping = 2.0 } }", f"{'l' * 40} = {{}}", "[factors]", "up to 40 letters"),
]


@pytest.mark.parametrize(
    ("old", "new", "mark", "words"), WRONG_FACTORS, ids=[new[:30] for _, new, _, _ in WRONG_FACTORS]
)
def test_invalid_factor_is_refused_with_line(tmp_path, old, new, mark, words):
    path = with_factors(tmp_path, old, new)
    with pytest.raises(ConfigurationError) as caught:
        read_design(path)
    line = path.read_text(encoding="utf-8").partition(mark)[0].count("\n") + 1
    assert str(caught.value).startswith(f"{path}:{line}: ") and words in str(caught.value)


def test_conditions_are_read_from_csv(tmp_path):
    design = read_design(with_csv(tmp_path))
    first, second = design.conditions
    assert (first.name, first.reference, first.procedure, first.element) == ("a", 1.0, {}, {"damping": 2})
    assert (second.name, second.factors) == ("b, slow", {"load": "heavy"})
    assert design.procedure_of(second)["most_trials"] == 3
    assert design.tables["conditions"][1]["procedure"] == {"most_trials": 3}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_of_a_spreadsheet_is_read(tmp_path, end):
    data = ("\ufeff" + 'name , reference,procedure.steps\n\n x ,1,"[0.3, 0.2]"\n').replace("\n", end).encode()
    (condition,) = read_design(with_csv(tmp_path, data)).conditions
    assert (condition.name, condition.reference, condition.procedure) == ("x", 1, {"steps": [0.3, 0.2]})


WRONG_CSV = [
    ("a,1.0", "a,-1.0", 2, "column 'reference'", "reference = -1.0"),
    ("a,1.0", "a,1;0", 2, "column 'reference'", "1;0"),
    (",3,8", ",0,8", 3, "column 'procedure.most_trials'", "most_trials"),
    (",8,heavy", ",eight,heavy", 3, "column 'element.damping'", "eight"),
    (",heavy", ",", 3, "column ", "factors"),
    (",heavy", ",heavy,9", 3, "column 6", "has 6"),
    (",8,heavy", ",8", 3, "column 5", "has 4"),
    ("a,1.0", 'a,"1,0"', 2, "column 'reference'", "1,0"),
    ('"b, slow"', '""', 3, "column 'name'", "needs a name"),
    ('"b, slow"', "a", 3, "column 'name'", "two of that name"),
    ("a,1.0", "a,[1", 2, "column 'reference'", "no list"),
    ("a,1.0", 'a,"[1.0]\ny = 3"', 3, "column 'reference'", "no list"),
    ("a,1.0", '"a\nb",1.0', 3, "column 'name'", "in one line"),
    ("a,1.0", "a\0,1.0", 2, "column 'name'", "in one line"),
    ("light", '"li\tght"', 2, "column ", "conditions.factors"),
    ("element.damping", "element", 1, "column 4", "unknown column"),
    ("factors.load", "factors.Load", 2, "column ", "factors"),
    ("element.damping", "reference", 1, "column 4", "occurs twice"),
    ("name,", "nome,", 1, "column 1", "'name'"),
    ("name,reference,", "reference,procedure.steps,", 1, "", "'name' is missing"),
    ('"b, slow"', '"b, slow" x', 3, "", "no CSV"),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"), WRONG_CSV, ids=[f"{old}-{new}" for old, new, *_ in WRONG_CSV]
)
def test_invalid_csv_is_refused_with_line_and_column(tmp_path, old, new, line, column, words):
    assert old in CSV
    with pytest.raises(ConfigurationError) as caught:
        read_design(with_csv(tmp_path, CSV.replace(old, new, 1)))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'conditions.csv'}:{line}") and column in message and words in message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"name;reference\na;1\n", "commas"),
        (b"name\n\xff\n", "csv:2: is no text"),
        (b"", "no condition"),
        (b"name\n" + b"".join(b"c%d\n" % n for n in range(201)), "more than 200"),
        (b'name\n"a\n', "no CSV"),
    ],
)
def test_unreadable_csv_is_refused(tmp_path, data, words):
    with pytest.raises(ConfigurationError, match=words):
        read_design(with_csv(tmp_path, data))


def test_missing_csv_is_refused(tmp_path):
    path = with_csv(tmp_path)
    (tmp_path / "conditions.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"weber\.toml:1: .*conditions\.csv"):
        read_design(path)
    with pytest.raises(ConfigurationError, match=r"weber\.toml:1: .*\.csv file"):
        read_design(changed(tmp_path, "conditions.csv", "conditions.txt", path.read_text()))


def request(out, code="P01"):
    return Request(code, 1, 7, out, {}, True)


def test_session_continues_with_the_csv_of_its_beginning(tmp_path):
    """The file may disappear after the session has begun; a changed copy in the session is refused."""
    journal, _ = begin(read_design(with_csv(tmp_path)), request(tmp_path / "out"))
    journal.close()
    (tmp_path / "conditions.csv").unlink()
    design, journal, _ = reopen(journal.place.folder)
    journal.close()
    assert [one.name for one in design.conditions] == ["a", "b, slow"]
    sidecar = json.loads(journal.place.sidecar.read_text(encoding="utf-8"))
    sidecar["conditions_text"] = CSV.replace("a,1.0", "a,1.5")
    journal.place.sidecar.write_text(json.dumps(sidecar), encoding="utf-8")
    with pytest.raises(RecordingError, match="changed"):
        reopen(journal.place.folder)


def test_preregistration_contains_the_csv_and_the_factors(tmp_path):
    page = as_markdown(preregistration(read_design(with_csv(tmp_path)), None, None))
    assert "- Factors: load (light, heavy)" in page and f"```csv\n{CSV}```" in page


@pytest.fixture
def session(tmp_path):
    """Folder of a session of the example, with fewer trials."""
    text = (ROOT / "examples" / "experiments" / "groups_and_factors.toml").read_text(encoding="utf-8")
    path = tmp_path / "example.toml"
    path.write_text(text.replace("trials = 24", "trials = 2"), encoding="utf-8")
    return Path(run_session(read_design(path), request(tmp_path / "out"))["folder"])


def test_tables_have_a_column_for_each_factor(session, tmp_path):
    (exported,) = export_sessions([session], tmp_path / "csv")
    assert {(row["condition"], row["factor_friction"], row["factor_damping"]) for row in exported.rows} == {
        ("weak, low", "weak", "low"),
        ("weak, high", "weak", "high"),
        ("strong, low", "strong", "low"),
    }
    assert "factor_friction,text" in (tmp_path / "csv" / "columns.csv").read_text(encoding="utf-8")
    head = (tmp_path / "csv" / "trials.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert head.endswith(",factor_friction,factor_damping")
    for to in ("bids", "psych-ds"):
        export_sessions([session], tmp_path / to, to=to)
    described = json.loads(next((tmp_path / "bids").rglob("*_beh.json")).read_text(encoding="utf-8"))
    assert described["factor_damping"]["Levels"]["low"] == "level low of the factor"


def person(code, **webers):
    """Return the result of a participant with a Weber fraction in each condition, None for a bound."""
    conditions = []
    for name, weber in webers.items():
        found = Estimate(weber or 1.0, 0.01, 2.0, bound="" if weber else "above")
        conditions.append(ConditionResult(name, 1.0, [], (Difference(75.0, found, found),)))
    return PersonResult(code, tuple(conditions), None, None, {}, (), {})


def test_report_compares_the_levels_of_factors(tmp_path):
    """Levels are compared where the other factors are equal; of `c` one condition is missing, and `b` has a bound."""
    levels = {"a": ("x", "p"), "b": ("y", "p"), "c": ("x", "q"), "d": ("y", "q"), "e": ("z", "q")}
    tables = [{"name": name, "factors": {"load": one, "grip": two}} for name, (one, two) in levels.items()]
    shown = design(conditions=[{**one, "reference": 1.0} for one in tables], procedure={**QUEST, "trials": 1})
    folder = write_session(tmp_path, tables=shown)
    experiment, settings = read_experiment([folder]), AnalysisSettings()
    people = [person("P1", a=0.1, b=0.2, c=0.1, d=0.8), person("P2", a=0.1, b=None, c=0.1, d=0.3, e=0.1)]
    effects = {(one.factor, one.second): one for one in analyse_effects(experiment, people, settings)}
    assert list(effects) == [("load", "y"), ("load", "z"), ("grip", "q")]
    load = effects["load", "y"]
    assert load.ratio.value == pytest.approx(math.exp((0.5 * math.log(2.0 * 8.0) + math.log(3.0)) / 2))
    assert (load.first, load.participants, load.quantity) == ("x", 2, "weber_fraction")
    assert effects["load", "z"].ratio is None and effects["load", "z"].participants == 1
    assert "y / x" in effect_table(list(effects.values()))
