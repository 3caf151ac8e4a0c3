"""Trial sequence, exploration monitor, answers of people, and screens of a live session."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from apps.experiment.design import read_design
from apps.experiment.screens.display import Display
from apps.experiment.screens.messages import Cannot, Command, Note
from apps.experiment.sequence import Participant, TrialSequence
from apps.experiment.session import live
from apps.experiment.session.live import Screens
from apps.experiment.session.presentation import Person, Watch
from apps.experiment.session.stages import Followers
from apps.experiment.settings import ExplorationSettings
from apps.experiment.trial import Answer
from apps.front_ends import messages as say
from apps.session.record import KeyEvent
from apps.settings.config import SessionConfig
from haptics.errors import DeviceFault
from haptics.records import NEUTRAL, ROW, Status
from tests.apps.experiment.designs import WEBER, changed
from tests.apps.experiment.screens.test_display import Heard, begin

WHO = Participant("P01", 1, 0, 7)


def walk(design, right, who=WHO):
    """Return the trials of a participant who answers the share `right` of each ten trials correctly."""
    sequence, plans = TrialSequence(design, who), []
    while (plan := sequence.next()) is not None:
        assert sequence.next() == plan
        plans.append(plan)
        correct = plan.trial % 10 < 10 * right
        sequence.add_answer(plan, str(plan.comparison if correct else 3 - (plan.comparison or 1)), correct)
    return plans


def test_trial_pairs_reference_and_comparison(tmp_path):
    plans = walk(read_design(changed(tmp_path, "most_trials = 4", "most_trials = 40")), 0.8)
    for plan in plans:
        assert plan.comparison in (1, 2)
        assert plan.values[plan.comparison - 1] == plan.condition.reference + plan.level
        assert plan.values[2 - plan.comparison] == plan.condition.reference
    for four in range(0, len(plans) - 3, 4):
        assert sorted(plan.comparison or 0 for plan in plans[four : four + 4]) == [1, 1, 2, 2]


def test_draws_do_not_depend_on_earlier_answers(tmp_path):
    text = WEBER.replace("{ most_trials = 3 }", "{}")
    design = read_design(changed(tmp_path, "most_trials = 4", "most_trials = 12", text))
    good, bad = walk(design, 1.0), walk(design, 0.3)
    assert [plan.level for plan in good] != [plan.level for plan in bad]
    for one, other in zip(good, bad, strict=True):
        for name in ("comparison", "condition", "kind", "label"):
            assert getattr(one, name) == getattr(other, name)


def test_order_differs_between_participants_sessions_and_seeds(tmp_path):
    design = read_design(changed(tmp_path, "most_trials = 4", "most_trials = 12"))
    orders = [
        [(plan.comparison, plan.condition.name) for plan in walk(design, 0.8, who)]
        for who in (WHO, Participant("P02", 1, 0, 7), Participant("P01", 2, 0, 7), Participant("P01", 1, 0, 8))
    ]
    assert len({tuple(order) for order in orders}) == len(orders)
    assert orders[0] == [(plan.comparison, plan.condition.name) for plan in walk(design, 0.8)]


def test_catch_trials_do_not_count_for_the_procedure(tmp_path):
    plans = walk(read_design(changed(tmp_path, "easy = 0.2", "easy = 0.2\nnull = 0.2")), 0.8)
    kinds = [plan.kind for plan in plans]
    assert kinds.count("test") == 7, "4 and 3 trials of the procedures, whatever is between"
    for plan in plans:
        if plan.kind == "catch-null":
            assert plan.values[0] == plan.values[1] and plan.track is None
        elif plan.kind == "catch-easy":
            assert plan.level == plan.condition.reference and plan.track is None


def test_places_kinds_and_conditions_of_catch_trials_are_random(tmp_path):
    """Forty catch trials detect a constant draw with a probability of 1 - 2^-40."""
    text = WEBER.replace("{ most_trials = 3 }", "{}").replace("reversals = 20\nmost_trials = 4", "reversals = 99\n")
    text = text.replace("reversals = 99\n", "reversals = 90\nmost_trials = 100")
    design = read_design(changed(tmp_path, "easy = 0.2", "easy = 0.1\nnull = 0.1", text))
    caught = [
        [plan for plan in walk(design, 0.8, who) if plan.kind.startswith("catch")]
        for who in (WHO, Participant("P02", 1, 0, 7))
    ]
    for plans in caught:
        assert len(plans) > 30
        names = [plan.condition.name for plan in plans]
        assert 0.2 < names.count("1 N") / len(names) < 0.8
        pairs = [(one.kind, two.kind) for one, two in zip(plans[::2], plans[1::2], strict=False)]
        assert len(set(pairs)) == 2, "which kind comes first of two is drawn, and each pair has both"
        assert len({(plan.trial - 4) % 5 for plan in plans}) == 5, "so is the place among five"
    for what in ("trial", "kind", "condition"):
        assert [getattr(one, what) for one in caught[0]] != [getattr(one, what) for one in caught[1]], what


def test_blocked_conditions_follow_a_williams_square(tmp_path):
    design = read_design(changed(tmp_path, "block = 5", "block = 5\ninterleave = false"))
    orders = []
    for slot in range(2):
        plans = walk(design, 0.8, Participant("P01", 1, slot, 7))
        orders.append(list(dict.fromkeys(plan.condition.name for plan in plans)))
        for block in {plan.block for plan in plans}:
            assert len({plan.condition.name for plan in plans if plan.block == block}) == 1
    assert orders == [["1 N", "2 N"], ["2 N", "1 N"]]


PRACTICE = "[practice]\nwindow = 4\ncorrect = 4\nmost = 9\n\n[catch]"


def test_practice_ends_at_its_criterion(tmp_path):
    plans = walk(read_design(changed(tmp_path, "[catch]", PRACTICE)), 1.0)
    practice = [plan for plan in plans if plan.kind == "practice"]
    assert [plan.trial for plan in practice] == [1, 2, 3, 4]
    assert {plan.block for plan in practice} == {1} and plans[4].block == 2
    assert all(plan.level == plan.condition.reference for plan in practice)


def test_failed_practice_ends_or_continues_the_session(tmp_path):
    design = read_design(changed(tmp_path, "[catch]", PRACTICE))
    assert [plan.kind for plan in walk(design, 0.2)] == ["practice"] * 9
    design = read_design(changed(tmp_path, "[catch]", PRACTICE.replace("most = 9", 'most = 9\nfailing = "go on"')))
    assert len(walk(design, 0.2)) > 9


PERIOD = 1e-3


def rows_along(path, marker=1):
    """Return rows of a handle on a path (n, 2) [m]."""
    rows = np.repeat(NEUTRAL, len(path))
    rows["tick"] = np.arange(len(path))
    rows["time"] = rows["tick"] * PERIOD
    rows["position"] = path
    rows["velocity"] = np.gradient(path, PERIOD, axis=0)
    rows["marker"] = marker
    return rows


def to_and_fro(length, duration, strokes, rest=0.2):
    """Return a path of minimum-jerk strokes with rests before, between and after them."""
    u = np.linspace(0.0, 1.0, round(duration / PERIOD))
    stroke = length * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    parts = [np.zeros(round(rest / PERIOD))]
    for number in range(strokes):
        parts += [length - stroke if number % 2 else stroke]
        parts += [np.full(round(rest / PERIOD), parts[-1][-1])]
    x = np.concatenate(parts)
    return np.column_stack((x, np.zeros_like(x)))


def explored(rows, chunk=7, **settings):
    watch = Watch(ExplorationSettings(**{"stroke": 0.03, **settings}), PERIOD, 0)
    slots = np.concatenate((rows, rows[:1]))
    for count in [*range(chunk, len(rows), chunk), len(rows)]:
        watch.evaluate(SimpleNamespace(slots=slots, count=count))
    return watch


@pytest.mark.parametrize("strokes", [0, 1, 2, 5])
@pytest.mark.parametrize("rest", [0.01, 0.2])
def test_strokes_are_counted(strokes, rest):
    found = explored(rows_along(to_and_fro(0.06, 0.6, strokes, rest)))
    # after a short rest the last stroke has not ended yet
    assert found.strokes == strokes or (rest < 0.02 and found.strokes == strokes - 1)


def test_short_motion_is_no_stroke():
    assert explored(rows_along(to_and_fro(0.025, 0.4, 4))).strokes == 0


def test_stroke_speed_is_length_over_duration():
    rows = np.concatenate((to_and_fro(0.06, 0.5, 2), to_and_fro(0.06, 1.2, 2)))
    found = explored(rows_along(rows), rest_speed=1e-3)
    assert found.greatest_speed == pytest.approx(0.06 / 0.5, rel=0.06)
    assert found.least_speed == pytest.approx(0.06 / 1.2, rel=0.06)


def test_watch_does_not_depend_on_the_polling_interval():
    rows = rows_along(to_and_fro(0.06, 0.6, 3))
    one, many = explored(rows, len(rows)), explored(rows, 1)
    for name in ("strokes", "least_speed", "greatest_speed", "rested", "rows", "gap"):
        assert getattr(one, name) == getattr(many, name)


def test_rest_counts_only_in_the_start_box():
    rows = rows_along(to_and_fro(0.06, 0.6, 1, rest=0.3))
    for centre, at_rest in (((0.06, 0.0), True), ((0.0, 0.0), False), ((0.06, 0.02), False)):
        found = explored(rows, start=centre, reach=0.01).rested * PERIOD
        assert (found > 0.25) is at_rest


def test_watch_collects_flags_lateness_and_gaps_of_its_marker():
    rows = rows_along(to_and_fro(0.06, 0.6, 1))
    rows["status"][50] = int(Status.LIMITED | Status.STARTED_LATE)
    rows["period_error"][60] = 0.004
    rows["marker"][100:] = 2
    rows["status"][150] = int(Status.ENERGY)
    watch = Watch(ExplorationSettings(), PERIOD, 0, marker=1)
    watch.evaluate(SimpleNamespace(slots=np.concatenate((rows, rows[:1])), count=len(rows)))
    assert (watch.rows, watch.late, watch.last_tick) == (100, 1, 99)
    assert watch.flags == int(Status.LIMITED | Status.STARTED_LATE)
    assert watch.gap == pytest.approx(0.005)


class ScriptedStage:
    """A trace that grows as the script requires, with buttons held in given ticks."""

    period = 1e-3

    def __init__(self, held=lambda tick: 0):
        slots = np.zeros(4096, ROW)
        slots["tick"] = np.arange(4096)
        slots["buttons"] = [held(tick) for tick in range(4096)]
        self.trace = SimpleNamespace(slots=slots, count=0)
        self.taken: list[SessionConfig] = []

    def apply_parameters(self, config):
        self.taken.append(config)

    def run(self, script, events=None):
        left = dict(events or {})
        while True:
            for tick in [tick for tick in left if tick <= self.trace.count]:
                left.pop(tick)()
            try:
                self.trace.count += next(script)
            except StopIteration as end:
                return end.value


def press(person, name, tick):
    return lambda: person.key(KeyEvent(name, True, tick, tick * 1_000_000))


def started(path):
    design = read_design(path)
    plan = TrialSequence(design, Participant("P01", 1, 0, 7)).next()
    return design, Person(design, Display(design)), plan


def answer(stage, person, plan, design, events=None):
    return stage.run(person.reply(stage, plan, plan.view(design), since=100), events)


BUTTONS = WEBER + 'buttons = { "1" = 2, "2" = 3 }\ndebounce = 0.005\n'


def test_button_answer_has_its_exact_tick(tmp_path):
    design, person, plan = started(changed(tmp_path, text=BUTTONS))
    stage = ScriptedStage(lambda tick: 1 << 3 if tick >= 437 else 1)
    assert answer(stage, person, plan, design) == Answer("2", 0.337, 437, "button", "button 3")


def test_held_or_bouncing_button_is_no_answer(tmp_path):
    design, person, plan = started(changed(tmp_path, text=BUTTONS))
    # button 2 is held until tick 300 and bounces when released; button 3 is pressed at 600
    stage = ScriptedStage(lambda tick: (1 << 2 if tick < 300 or tick == 303 else 0) | (1 << 3 if tick >= 600 else 0))
    reply = answer(stage, person, plan, design)
    assert reply is not None and (reply.response, reply.tick) == ("2", 600)


def test_block_does_not_begin_with_presses_of_the_block_before(tmp_path, monkeypatch):
    """The ticks of every block begin at 0: a late press of the last trial is no answer, and hides no press."""
    design, person, plan = started(changed(tmp_path, text=BUTTONS))
    stage = ScriptedStage(lambda tick: 1 << 2 if 3000 <= tick < 3050 else 0)
    stage.trace.count = 2990
    assert answer(stage, person, plan, design).tick == 3000
    person.key(KeyEvent("2", True, 3500, 3500 * 1_000_000))  # after the answer
    monkeypatch.setattr(Followers, "begin", lambda screens, session: None)
    screens = Screens(design, Display(design), Heard(), None)
    screens.person = person
    screens.begin(None)
    stage = ScriptedStage(lambda tick: 1 << 2 if 437 <= tick < 500 else 0)
    assert answer(stage, person, plan, design) == Answer("1", 0.337, 437, "button", "button 2")


KEY_PRESSES = {
    "the tick of the press": ([(512, "left", 497)], Answer("1", 0.397, 497, "key", "left")),
    "before the question": ([(0, "left", 90), (400, "x", 390), (700, "2", 690)], Answer("2", 0.59, 690, "key", "2")),
    "after the time-out": ([(960, "left", 950)], None),
}


@pytest.mark.parametrize(("presses", "expected"), KEY_PRESSES.values(), ids=KEY_PRESSES)
def test_key_answers_from_the_question_to_the_time_out(tmp_path, presses, expected):
    design, person, plan = started(changed(tmp_path, "block = 5", "block = 5\ntime_out = 0.8"))
    events = {seen: press(person, name, tick) for seen, name, tick in presses}
    assert answer(ScriptedStage(), person, plan, design, events) == expected


VALUES = WEBER.replace("{ most_trials = 3 }", "{}").replace("easy = 0.2", "easy = 0.0").split("[response]")[0]
STAIRCASE = """kind = "staircase"
start = 0.5
minimum = 0.02
maximum = 2.0
reversals = 20
most_trials = 4
"""


def task_text(task, procedure):
    assert STAIRCASE in VALUES
    return VALUES.replace('"discrimination"', f'"{task}"').replace(STAIRCASE, procedure)


@pytest.mark.parametrize(("point", "enter"), [("period", "return"), ("comma", "enter")])
def test_number_is_typed_and_corrected(tmp_path, point, enter):
    text = task_text("estimation", 'kind = "estimation"\nlevels = [1.0, 2.0]\n')
    design, person, plan = started(changed(tmp_path, text=text))
    typed = ["1", "2", "backspace", point, "5", enter]
    events = {200 + 50 * k: press(person, name, 200 + 50 * k) for k, name in enumerate(typed)}
    reply = answer(ScriptedStage(), person, plan, design, events)
    assert reply is not None and reply.response == pytest.approx(1.5)


def test_value_is_adjusted_compared_and_confirmed(tmp_path):
    text = task_text("adjustment", 'kind = "adjustment"\nstarts = [0.5, 2.0]\n')
    design, person, plan = started(changed(tmp_path, text=text))
    stage = ScriptedStage()
    assert person.explore(stage, plan) is False
    for name in ("up", "up", "down", "c"):
        person.key(KeyEvent(name, True, 10, 10))
    assert person.explore(stage, plan) is False
    forces = [config.law["force"] for config in stage.taken]
    assert forces == pytest.approx(
        [plan.level * 1.05, plan.level * 1.05**2, plan.level * 1.05, plan.condition.reference]
    )
    person.key(KeyEvent("return", True, 20, 20))
    assert person.explore(stage, plan) is True
    reply = answer(stage, person, plan, design)
    assert reply == Answer(pytest.approx(plan.level * 1.05), None, 20, "key", "return")
    person.begin_trial()  # the interval ends before the value is confirmed
    assert person.explore(stage, plan) is False
    person.key(KeyEvent("up", True, 25, 25))
    assert person.explore(stage, plan) is False
    assert answer(stage, person, plan, design) is None
    person.begin_trial()  # the trial is repeated, and begins with the presented value
    assert person.explore(stage, plan) is False
    person.key(KeyEvent("return", True, 30, 30))
    assert person.explore(stage, plan) is True
    assert answer(stage, person, plan, design).response == plan.level


class Written:
    """A session that collects its events and notes."""

    def __init__(self):
        self.events: list[str] = []
        self.notes: list[str] = []

    def event(self, name, **fields):
        self.events.append(name)

    def add_note(self, text):
        self.notes.append(text)


@pytest.fixture
def screens(tmp_path):
    """Return the screens of a session, its display, the front end of the participant, and its records."""
    design = read_design(changed(tmp_path))
    display, participant, _, _ = begin(design)
    screens = Screens(design, display, participant, None)
    screens.experiment_session = Written()
    return screens, display, participant, screens.experiment_session


def test_lost_screen_is_journaled_once(screens):
    screens, _, participant, written = screens
    screens.run_periodic_tasks()
    participant.open = False
    for _ in range(3):
        with pytest.raises(DeviceFault, match="All answers are in the journal"):
            screens.run_periodic_tasks()
    assert written.events == ["screen-lost"]


def test_note_during_the_consent_is_journaled(tmp_path, monkeypatch):
    """The consent and the first forms come before the first block and its instructions."""
    notes = []

    class Session:
        def __init__(self, *arguments, questioner, **named):
            self.screens = questioner

        def run(self):
            self.screens.execute(None, Note("asked for help with reading"))
            return "consent refused"

        def add_note(self, text):
            notes.append(text)

    monkeypatch.setattr(live, "ExperimentSession", Session)
    monkeypatch.setattr(live, "open_participant", lambda settings: Heard())
    monkeypatch.setattr(live, "open_experimenter", Heard)
    monkeypatch.setattr(live, "require_screen", lambda fronts, participant: None)
    monkeypatch.setattr(live, "LINGER", 0.0)
    live.run_with_screens(read_design(changed(tmp_path)), SimpleNamespace(records=[]), WHO)
    assert notes == ["asked for help with reading"]


def test_last_answer_is_withdrawn_with_the_key_during_the_break_after_it(tmp_path, monkeypatch):
    design = read_design(changed(tmp_path, "block = 5", "block = 5\nrest = 0.0"))
    display, participant, _, plan = begin(design)
    screens, pressed = Screens(design, display, participant, None), []
    monkeypatch.setattr(screens, "_shown", True)

    def press(connections, timeout):
        pressed.append("space" if pressed else "backspace")
        screens.execute(participant, say.Key(pressed[-1], True, 0.0))

    screens.execute(participant, say.Key("backspace", True, 0.0))
    assert not display.redo, "no break"
    monkeypatch.setattr(live, "wait", press)
    screens.before(Written(), plan)
    assert display.redo and pressed[0] == "backspace"


def test_events_of_the_last_page_do_not_open_the_session_again(screens, monkeypatch):
    """The end is in the journal; the experimenter has ended the session, and the participant's window is closed."""
    screens, display, participant, written = screens
    display.aborted = True
    monkeypatch.setattr(live, "wait", lambda connections, timeout: participant.close())
    screens.finish()
    screens.execute(participant, Cannot("window", "too long"))
    screens.execute(participant, Note("went well"))
    assert (written.events, written.notes) == ([], ["went well"])


def test_screen_requests_are_executed_and_notes_journaled(screens):
    screens, display, participant, written = screens
    paused = []
    for message in (
        Command("pause"),
        Command("go on"),
        Command("pause"),
        Command("pause"),
        Command("redo"),
        Note("said aloud"),
        Cannot("sound", "no device"),
    ):
        screens.execute(participant, message)
        paused.append(display.paused)
    assert paused[:4] == [True, False, True, False]
    assert display.redo and not display.aborted
    assert (written.notes, written.events) == (["said aloud"], ["screen-cannot"])
    screens.execute(participant, Command("abort"))
    assert display.aborted
