"""Answers of a simulated observer."""

from __future__ import annotations

from collections import Counter

from apps.experiment.engine.presenting import Reply
from apps.experiment.engine.sequence import TrialSequence, TrialSpec
from apps.experiment.engine.stage import Script, Stage
from apps.experiment.observers import Observer
from apps.experiment.trial import TrialView


class Simulated:
    """Respondent that answers with a simulated observer, after the observer's reaction time.

    Parameters
    ----------
    observer : Observer
        The simulated observer.
    sequence : TrialSequence
        Trial sequence, which supplies the random numbers of every trial.
    needs_rows : bool
        Whether the observer evaluates the recorded rows.
    time_out : float
        Longest reaction time that counts as an answer [s]. 0: unlimited.
    """

    def __init__(self, observer: Observer, sequence: TrialSequence, *, needs_rows: bool, time_out: float = 0.0) -> None:
        self._observer, self._sequence, self._time_out = observer, sequence, time_out
        self.needs_rows = needs_rows
        self._missed: Counter[int] = Counter()

    def explore(self, stage: Stage, plan: TrialSpec) -> bool | None:
        """Do nothing.

        The answer to an adjustment is the value that would have been set.
        """
        return None

    def reply(self, stage: Stage, plan: TrialSpec, view: TrialView, since: int) -> Script[Reply | None]:
        """Return the observer's answer.

        Its reaction time is a whole number of ticks.
        """
        answer = self._observer.answer(view, self._sequence.generator(plan, self._missed[plan.trial]))
        ticks, out = max(round(answer.reaction_time / stage.period), 2), round(self._time_out / stage.period)
        if out and ticks > out:
            self._missed[plan.trial] += 1
            yield out
            return None
        yield ticks - 1  # the first tick has already passed at the end of the interval
        return Reply(answer.response, round(ticks * stage.period, 9), since + ticks, "observer")
