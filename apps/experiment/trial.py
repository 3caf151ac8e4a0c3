"""Types of a trial as seen by a participant or a simulated observer, and of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Task:
    """Kind of trial: number of presentations, permitted answers, and chance level.

    Attributes
    ----------
    intervals : int
        Number of presentations in a trial.
    responses : tuple of str
        Permitted answers, empty if the answer is a number.
    guess : float or None
        Probability that a guess is correct, if fixed by the task. None if it depends on the criterion of the
        participant (measured by catch trials without a stimulus), or if no answer is wrong.
    text : str
        Description of the task.
    """

    intervals: int
    responses: tuple[str, ...]
    guess: float | None
    text: str


TASKS: dict[str, Task] = {
    "discrimination": Task(2, ("1", "2"), 0.5, "two intervals, reference and comparison: which was stronger"),
    "detection-2ifc": Task(2, ("1", "2"), 0.5, "two intervals, one of them without the stimulus: which had it"),
    "detection": Task(1, ("yes", "no"), None, "one interval: was there anything"),
    "same-different": Task(2, ("same", "different"), None, "two intervals: were they the same"),
    "adjustment": Task(1, (), None, "a value is turned until it feels like the reference"),
    "estimation": Task(1, (), None, "a number is given that is proportional to what was felt"),
}
"""Tasks by their names in an experiment file."""


@dataclass(frozen=True)
class TrialView:
    """Trial as seen by a participant or a simulated observer.

    Attributes
    ----------
    task : str
        One of `TASKS`.
    axis : str
        Setting that varies, such as ``law.force``.
    reference : float
        Value of the reference, in units of the axis; 0 in a detection task.
    level : float
        Level chosen by the procedure: the increment over the reference in a discrimination, the value in a detection or
        estimation, and the initial value in an adjustment. 0 in a catch trial without a difference.
    values : tuple of float
        Value of the axis in each interval.
    order : int or None
        Interval, 1 or 2, with the comparison (or the stimulus). None if there is only one interval.
    rows : tuple of structured arrays or None
        Rows of the recording of each interval, or None if nothing was recorded.
    number : int
        Number of the trial in its session, from 1.
    """

    task: str
    axis: str
    reference: float
    level: float
    values: tuple[float, ...]
    order: int | None = None
    rows: tuple[NDArray[Any], ...] | None = None
    number: int = 1


@dataclass(frozen=True)
class Answer:
    """Answer to a trial.

    Attributes
    ----------
    response : str or float
        A permitted answer of the task, or a number (the adjusted value or the estimate).
    reaction_time : float or None
        Time from the end of the last interval to the answer [s]. None if a person answered during it: an adjustment.
    tick : int or None
        Tick of the answer, None outside a session.
    source, key : str
        Source of the answer (`observer`, `key` or `button`), and name of the key or button.
    """

    response: str | float
    reaction_time: float | None
    tick: int | None = None
    source: str = "observer"
    key: str | None = None

    def correct(self, trial: TrialView) -> bool | None:
        """Return whether the answer to `trial` is correct, or None if no answer is right or wrong."""
        words = TASKS[trial.task].responses
        if not words:
            return None
        if words == ("1", "2"):
            return self.response == str(trial.order)
        return self.response in ({"yes", "different"} if trial.level > 0.0 else {"no", "same"})
