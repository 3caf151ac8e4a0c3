"""What a person, or an observer in software, meets in a trial, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Task:
    """A kind of trial: how many presentations it has, what may be answered, and how often chance is right.

    Attributes
    ----------
    intervals : int
        Presentations in a trial.
    responses : tuple of str
        Words that are an answer; empty where the answer is a number.
    guess : float or None
        Probability that a guess is correct, where it is fixed by the task; None where it depends on the criterion of
        the participant (it is measured by catch trials without a stimulus), or where no answer is wrong.
    text : str
        What is asked.
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
"""The tasks by the names that an experiment file gives them."""


@dataclass(frozen=True)
class TrialView:
    """A trial as whoever answers it meets it.

    Attributes
    ----------
    task : str
        One of `TASKS`.
    axis : str
        The setting that varies, such as ``law.force``.
    reference : float
        Value of the reference, in units of the axis; 0 in a detection task.
    level : float
        What the procedure chose: in a discrimination the increment over the reference, in a detection the value itself;
        in an adjustment the value at which it starts, in an estimation the value. 0 in a catch trial without a
        difference.
    values : tuple of float
        Value of the axis in each interval.
    order : int or None
        The interval, 1 or 2, that has the comparison (or the stimulus); None where there is only one.
    rows : tuple of structured arrays or None
        Rows of the recording of each interval; None where nothing was recorded.
    """

    task: str
    axis: str
    reference: float
    level: float
    values: tuple[float, ...]
    order: int | None = None
    rows: tuple[NDArray[Any], ...] | None = None


@dataclass(frozen=True)
class Answer:
    """An answer and the time that it took.

    Attributes
    ----------
    response : str or float
        One of the words of the task, or a number (the value that was set, or the estimate).
    reaction_time : float
        From the end of the last interval to the answer [s].
    """

    response: str | float
    reaction_time: float

    def correct(self, trial: TrialView) -> bool | None:
        """Tell whether it is the correct answer to `trial`; None where no answer is right or wrong."""
        words = TASKS[trial.task].responses
        if not words:
            return None
        if words == ("1", "2"):
            return self.response == str(trial.order)
        return self.response in ({"yes", "different"} if trial.level > 0.0 else {"no", "same"})
