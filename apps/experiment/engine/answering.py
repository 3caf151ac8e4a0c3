"""An observer in software as the one who answers."""

from __future__ import annotations

from collections import Counter

from apps.experiment.engine.course import Course, Plan
from apps.experiment.engine.presenting import Reply
from apps.experiment.engine.stage import Script, Stage
from apps.experiment.observers import Observer
from apps.experiment.trial import TrialView


class Simulated:
    """Lets an observer answer, after the time that it says it takes.

    Parameters
    ----------
    observer : Observer
        Who answers.
    course : Course
        Has the random numbers of every trial.
    needs_rows : bool
        Whether the observer goes by what was recorded.
    time_out : float
        An answer that takes longer is none [s]; 0: any time.
    """

    def __init__(self, observer: Observer, course: Course, *, needs_rows: bool, time_out: float = 0.0) -> None:
        self._observer, self._course, self._time_out = observer, course, time_out
        self.needs_rows = needs_rows
        self._missed: Counter[int] = Counter()

    def explore(self, stage: Stage, plan: Plan) -> bool | None:
        """Feel, and do nothing; an adjustment is answered with the value that would have been set."""
        return None

    def reply(self, stage: Stage, plan: Plan, view: TrialView, since: int) -> Script[Reply | None]:
        """Return the observer's answer; a reaction time is a whole number of ticks."""
        answer = self._observer.answer(view, self._course.generator(plan, self._missed[plan.trial]))
        ticks, out = max(round(answer.reaction_time / stage.period), 2), round(self._time_out / stage.period)
        if out and ticks > out:
            self._missed[plan.trial] += 1
            yield out
            return None
        yield ticks - 1  # the one that was waited for at the end of the interval is the first
        return Reply(answer.response, round(ticks * stage.period, 9), since + ticks, "observer")
