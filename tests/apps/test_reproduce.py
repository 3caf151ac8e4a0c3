"""The reproductions of published figures."""

import argparse
import csv
import functools
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from apps.reproduce import command, weigand
from apps.reproduce import kikuuwe_fig11 as blocks
from apps.reproduce.blockage import MODELS, RULES, SERVOS, blockage, line
from apps.reproduce.command import REPRODUCTIONS
from apps.reproduce.kikuuwe_arm import USUAL, experiment, trial_measures
from apps.reproduce.outcome import Bound, Outcome, Row, count_words
from apps.reproduce.report import COLUMNS, describe, write, write_summary
from haptics.errors import ConfigurationError
from tests.processes import ROOT

# --- command ----------------------------------------------------------------------------------------------------------


def reproduce(*arguments):
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(arguments))


def test_command_writes_picture_table_and_summary(tmp_path):
    folder = tmp_path / "new" / "folder"
    answer = reproduce("kikuuwe-fig7", "kikuuwe-fig6", "kikuuwe-fig7", "--out", str(folder))
    assert (answer.status, answer.result["all_met"]) == (0, True)
    found = answer.result["reproductions"]
    assert [reproduction["id"] for reproduction in found] == ["kikuuwe-fig7", "kikuuwe-fig6"]
    assert set(found[0]["rows"][0]) == set("what expected ours difference tolerance unit source met holds".split())
    tally = {"paper": 1, "derived": 8, "guard": 0}
    assert found[0]["tally"] == {source: {"count": count, "holding": count} for source, count in tally.items()}
    ink = (np.asarray(imread(found[0]["picture"]))[..., :3] < 0.9).any(axis=2)
    assert ink.mean() > 0.005
    files = {f"kikuuwe-{figure}.{kind}" for figure in ("fig6", "fig7") for kind in ("csv", "png")}
    assert {path.name for path in folder.iterdir()} == files | {"summary.md"}
    json.dumps(answer.result, allow_nan=False)
    assert "9 of 9 met" in answer.text


@pytest.mark.parametrize(
    ("rows", "all_met", "error", "words"),
    [
        ([Row("length", 1.0, 2.0, 0.5, "m")], False, "1 of 1 numbers are not met.", ["0 of 1 met"]),
        (
            [Row("length", 1.0, 1.0), Row("size", Bound(maximum=1.0), 2.0, source="guard")],
            True,
            "1 of 1 guards do not hold.",
            ["1 of 1 met, guards: 0 of 1 hold", "guard does not hold: size: 2"],
        ),
    ],
    ids=["number", "guard"],
)
def test_unmet_number_or_guard_gives_status_1(tmp_path, monkeypatch, rows, all_met, error, words):
    monkeypatch.setattr(command, "reproduce", lambda name: Outcome(rows, lambda figure: figure.subplots()))
    answer = reproduce("kikuuwe-fig7", "--out", str(tmp_path))
    assert (answer.status, answer.error, answer.result["all_met"]) == (1, error, all_met)
    assert answer.result["all_guards_hold"] != all_met
    assert all(part in answer.text for part in words)


def test_unknown_id_is_refused_with_all_valid_ones(tmp_path):
    with pytest.raises(ConfigurationError, match=r"'kikuuwe-fig9'.*Allowed: all, .*kikuuwe-fig6"):
        reproduce("kikuuwe-fig6", "kikuuwe-fig9", "--out", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("arguments", [(), ("all",), ("kikuuwe-fig6", "all")])
def test_list_has_every_title(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = reproduce(*arguments, "--list")
    assert [row["id"] for row in answer.result["reproductions"]] == list(REPRODUCTIONS)
    assert "kikuuwe-fig13" in answer.text
    assert "Fig. 13" in answer.text
    assert list(tmp_path.iterdir()) == []


# --- outcome and report -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("expected", "ours", "tolerance", "difference", "met"), [
    (1.0, 1.0, 0.0, 0.0, True), (1.0, 1.25, 0.25, 0.25, True), (1.0, 0.5, 0.25, -0.5, False),
    (Bound(minimum=2.0), 5.0, 0.0, 0.0, True), (Bound(minimum=2.0), 1.5, 0.0, -0.5, False),
    (Bound(maximum=2.0), 2.5, 0.0, 0.5, False), (Bound(maximum=2.0), 2.5, 0.5, 0.5, True),
    (Bound(1.0, 2.0), 1.5, 0.0, 0.0, True),
])  # fmt: skip
def test_row_is_met_within_its_tolerance(expected, ours, tolerance, difference, met):
    row = Row("length", expected, ours, tolerance, "m")
    assert row.met is met
    assert row.difference == difference


@pytest.mark.parametrize("ours", [math.nan, math.inf])
@pytest.mark.parametrize("expected", [1.0, Bound(minimum=0.0), Bound(maximum=1.0), Bound()])
def test_row_that_is_not_finite_is_not_met(expected, ours):
    assert not Row("length", expected, ours, 10.0).met


def test_guard_holds_or_not_and_does_not_count_as_met():
    inside, outside = (Row("size", Bound(maximum=1.0), ours, source="guard") for ours in (0.5, 1.5))
    assert (inside.holds, outside.holds) == (True, False)
    assert (inside.met, outside.met) == (None, None)
    number = Row("length", 1.0, 1.0)
    assert count_words([number, inside, outside]) == "1 of 1 met, guards: 1 of 2 hold"
    assert [f"{bound}" for bound in (Bound(maximum=4.5), Bound(2.4, 3.4))] == ["at most 4.5", "2.4 to 3.4"]


def test_table_json_and_summary_have_every_row(tmp_path):
    rows = [
        Row("length, |x|", 1.0, 1.5, 0.1, "m"),
        Row("force", Bound(minimum=2.0), 3.0, 0.0, "N", "derived"),
        Row("lost", 1.0, math.nan),
        Row("size", Bound(maximum=1.0), 0.5, source="guard"),
        Row("weight", Bound(maximum=1.0), 2.0, source="guard"),
    ]
    result = write("some-fig1", "a figure", Outcome(rows, lambda figure: figure.subplots()), tmp_path)
    with result.table.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert tuple(table[0]) == COLUMNS
    assert [row["what"] for row in table] == ["length, |x|", "force", "lost", "size", "weight"]
    assert [row["met"] for row in table] == ["false", "true", "false", "", ""]
    assert [row["holds"] for row in table] == ["false", "true", "false", "true", "false"]
    assert float(table[0]["difference"]) == 0.5
    assert table[1]["expected"] == "at least 2"
    assert (table[1]["unit"], table[1]["source"]) == ("N", "derived")
    answer = json.loads(json.dumps(result.as_json(), allow_nan=False))
    assert answer["rows"][1]["expected"] == {"minimum": 2.0}
    assert answer["rows"][2]["ours"] is None
    assert answer["rows"][2]["met"] is False
    assert [row["met"] for row in answer["rows"][3:]] == [None, None]
    assert [row["holds"] for row in answer["rows"][3:]] == [True, False]
    assert answer["tally"]["guard"] == {"count": 2, "holding": 1}
    summary = write_summary([result], tmp_path)
    text = summary.read_text()
    assert "![a figure](some-fig1.png)" in text
    assert "| length, \\|x\\| | 1 | 1.5 | 0.1 | m | paper | **no** |" in text
    assert "| a figure | 0 of 2 | 1 of 1 | 1 of 2 |" in text
    words = describe([result], summary)
    assert "1 of 3 met" in words
    assert "not met: length, |x|: 1.5 m, expected 1 (tolerance 0.1)" in words
    assert "not met: force" not in words and "not met: weight" not in words
    assert "guard does not hold: weight: 2 , expected at most 1" in words


# --- blocked arm ------------------------------------------------------------------------------------------------------


@functools.cache
def freed(model, name, rule):
    return blockage(model, SERVOS[name], **RULES[rule])


def numbers(line, names=1):
    """Return the numbers of a table row after its columns with names."""
    return [float(number) for number in re.findall(r"-?[0-9.]+", line.strip("|").split("|", names)[names])]


def stated(page, *names):
    """Return the numbers in the row of a table in the documentation that begins with these names."""
    begin = re.escape(f"| {' | '.join(names)} |")
    line = re.search(f"^{begin}.*$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None, names
    return numbers(line[0], len(names))


@pytest.mark.parametrize("name", SERVOS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", MODELS)
def test_blocked_arm_results_are_those_of_the_page(model, rule, name):
    """The page has the rows of model A; model D agrees with them."""
    found = numbers(line(model, name, rule, freed(model, name, rule)), 3)
    assert found == pytest.approx(stated("studies/blocked_arm.md", "A", name, rule), rel=0.05, abs=0.5)


def test_unblocked_arm_does_not_jump():
    """The arm follows the hand and stops with it."""
    result = blockage("A", {"law": "pid"}, blocked_for=0.0)
    assert result.force == 0.0
    assert result.jump < 1e-3
    assert result.ahead < 1e-3


@pytest.mark.parametrize("model", MODELS)
def test_following_rule_bounds_the_jump_and_ends_the_run(model):
    without, with_rule = freed(model, "PID", "off"), freed(model, "PID", "on")
    assert without.message == ""
    assert "it does not follow" in with_rule.message
    assert 0.1 < with_rule.ended < 0.4
    assert with_rule.ahead < 0.1 * without.ahead
    assert with_rule.jump < 0.1 * without.jump
    assert with_rule.speed < 0.5 * without.speed


# --- servo laws of the arm --------------------------------------------------------------------------------------------


def test_early_breakaway_is_detected():
    """The experiment has 6 N of friction: with 7 N the model would still stick, with 5 N it would slide earlier."""
    run = experiment()
    assert trial_measures(run).early == 0.0
    for friction in (5.0, 7.0):
        assert trial_measures(run, type(USUAL)(friction=friction)).early > 0.9


# --- stacked blocks ---------------------------------------------------------------------------------------------------

MODES = st.sampled_from((-1, 0, 1))
SPEEDS = st.floats(-1.0, 1.0)


@given(SPEEDS, SPEEDS, MODES, MODES, st.floats(0.1, 10.0), st.floats(0.1, 10.0), st.floats(-0.9, 0.9))
def test_coupled_contacts_obey_the_law(q1, q2, m1, m2, a, c, coupling):
    b = coupling * float(np.sqrt(a * c))
    limits = (0.7, 0.3)
    forces, _ = blocks.rigid_friction((q1, q2), (a, b, c), limits, (m1, m2))
    velocity = np.array((q1, q2)) - np.array(((a, b), (b, c))) @ forces
    # The law, written without cases: f is f + v cut off at the levels.
    assert np.clip(forces + velocity, -np.array(limits), limits) == pytest.approx(np.array(forces), abs=1e-8)
    assert forces == pytest.approx(blocks.rigid_friction((q1, q2), (a, b, c), limits)[0], abs=1e-7)


def test_nan_velocities_are_refused():
    with pytest.raises(ArithmeticError, match="no mode fits"):
        blocks.rigid_friction((np.nan, 0.0), (1.0, 0.0, 1.0), (0.1, 0.1))


@pytest.mark.parametrize("wiring", blocks.WIRINGS)
def test_rigid_reference_obeys_its_law_and_newton(wiring):
    period = 2e-4
    run = blocks.rigid(wiring, 3.0, period)
    assert blocks.law_residual(run) < 1e-9
    assert blocks.law_residual(replace(run, friction_force=run.friction_force + 0.01)) > 0.009
    assert run.sticking.any(axis=0).all() and not run.sticking.all(axis=0).any()
    u = blocks.drive(run.time)
    far_end = period * np.cumsum(u) if wiring == "ground" else 0.0 * u
    pull = -np.array(blocks.SPRINGS) * (run.position - np.column_stack((far_end, 0.0 * u)))
    friction = run.friction_force - np.column_stack((run.friction_force[:, 1], 0.0 * u))
    acceleration = np.diff(run.velocity, axis=0) / period
    late = np.abs(np.array(blocks.MASSES) * acceleration - (pull - friction)[1:])
    assert late.max() < 0.05  # springs are taken at the start of each step


@pytest.mark.parametrize("wiring", blocks.WIRINGS)
def test_rigid_reference_converges_with_its_step(wiring):
    coarse, fine, finest = (blocks.rigid(wiring, 2.0, period) for period in (4e-4, 2e-4, 1e-4))
    first = np.abs(coarse.position - fine.position[1::2]).max()
    second = np.abs(fine.position - finest.position[1::2]).max()
    assert second < 0.7 * first
    assert second < 3e-4


@pytest.mark.parametrize("wiring", blocks.WIRINGS)
def test_compliant_blocks_obey_the_law(wiring):
    run = blocks.compliant(blocks.network(wiring), 3.0)
    assert blocks.law_residual(run) == 0.0
    assert np.abs(run.friction_force).max(axis=0).tolist() == list(blocks.FRICTION)


# --- Weigand et al. 2020 ----------------------------------------------------------------------------------------------


def test_motion_turns_back_without_a_jump_and_ends_where_it_began():
    motion = weigand.motion()
    middle = len(motion) // 2
    assert motion[middle, 0] == pytest.approx(math.radians(weigand.TURN))
    np.testing.assert_allclose(motion[[0, -1], :4], 0.0, atol=1e-9)
    steps = np.abs(np.diff(motion, axis=0)).max(axis=0)
    assert (steps < 1e-3 * np.abs(motion).max(axis=0)).all()  # in none of the five columns


def test_reference_torque_is_the_inverse_dynamics_of_the_link():
    run = weigand.run(weigand.FLAT)
    link = weigand.motion()[::2]
    needed = weigand.INERTIA * link[:, 2] + weigand.JOINT.friction(link[:, 1])
    np.testing.assert_allclose(run.reference_gear_torque, needed, atol=1e-9)
    np.testing.assert_allclose(run.error, link[:, 0] - run.position, atol=0.0)


def test_stiffness_with_slack_equals_the_other_at_rest():
    slack, knee = (law.torque_derivatives(0.0)[1] for law in (weigand.SLACK, weigand.JOINT.stiffness))
    assert slack == pytest.approx(knee, rel=0.1)


def test_printed_pieces_differ_only_beyond_the_play():
    twist = np.linspace(0.0, weigand.BACKLASH, 20)
    np.testing.assert_array_equal(weigand.printed_pieces(twist), weigand.PIECES.torque(twist))
    assert weigand.printed_pieces(np.array([1e-3])) != pytest.approx(weigand.PIECES.torque(1e-3), rel=0.1)


def test_ranking_depends_on_the_inertia_and_ratios_within_the_table_of_the_paper_do_not_count():
    rows = weigand.reproduce_table1().rows
    low, high = (row.ours for row in rows if "real inertia 1 %" in row.what)
    assert low < 1.0 < high
    assert [row.met for row in rows if row.what.startswith("text against table")] == [None] * 5
