"""One `Show` of every kind, as an experiment would say them."""

import time

from apps.experiment.screens.messages import Choice, FormItem, Pacing, Show, StartBox

INSTRUCTIONS = """You will feel the handle resist as you move it. In each trial you move it twice, first in \
interval 1, then in interval 2.

One of the two resists more than the other. Say which one: press 1 for the first, 2 for the second. If you are not \
sure, guess.

Move at an even pace, from one side to the other and back, and wait in the small square until the next interval begins.\
"""
LABELS = (
    "stimme überhaupt nicht zu",
    "stimme nicht zu",
    "stimme eher nicht zu",
    "unentschieden",
    "stimme eher zu",
    "weitgehend einverstanden",
    "stimme voll und ganz zu",
)
GO_ON = Choice("space", "go on")
DONE = (Choice("return", "done"),)
TWO = (Choice("1", "first"), Choice("2", "second"))
START = StartBox((-0.06, 0.0), 0.008)


def shows():
    """Return them by name."""
    now = time.monotonic()
    pacing = Pacing(((-0.06, 0.0), (0.06, 0.0)), 1.0, now)
    labels = tuple(f"option {number}" for number in range(9))
    question = "How hard did you have to work to accomplish your level of performance?"
    ends = {"low": "very low", "high": "very high"}
    items = {
        "likert": FormItem("likert", question, points=7, chosen=2, hint="keys", **ends),
        "choice": FormItem("choice", question, labels, points=9, chosen=3, hint="keys"),
        "scale": FormItem("analogue", question, points=20, share=0.4, alert="Please give an answer.", **ends),
        "typed number": FormItem("number", question, entry="12", unit="years"),
        "labelled likert": FormItem("likert", question, LABELS, points=7, hint="keys"),
        "typed text": FormItem("text", question, entry=20 * "some words "),
        "long typed text": FormItem("text", question, entry=180 * "some words " + 20 * "x"),
        "page": FormItem("page", INSTRUCTIONS),
    }
    forms = {
        name: Show("form", "Workload", page=2, pages=21, item=item, keys=(Choice("backspace", "back"), *DONE))
        for name, item in items.items()
    }
    arrows = (Choice("left", "back"), Choice("right", "go on"))
    return forms | {
        "instructions": Show("instructions", "How it goes", INSTRUCTIONS, page=2, pages=4, keys=arrows, share=0.0),
        "practice": Show("practice", "Practice", "You will be told whether you were right.", keys=(GO_ON,)),
        "park": Show("park", text="Move to the square and wait", of=2, field=True, start=START, share=0.1, hold="Hold"),
        "first": Show("interval", interval=1, of=2, field=True, share=0.3, pacing=pacing),
        "second": Show("interval", interval=2, of=2, field=True, cursor=False, share=0.3),
        "third": Show("interval", interval=3, of=3, field=True, share=0.3),
        "unseen": Show("interval", interval=2, of=2),
        "gap": Show("gap", text="Move back to the square", of=2, field=True, start=START, share=0.3),
        "response": Show("response", "Which one resisted more?", of=2, keys=TWO, share=0.3),
        "number": Show("response", "How rough was it?", "Type any number", entry="12.5", keys=DONE, share=0.3),
        "right": Show("feedback", text="Right", feedback="right", share=0.3),
        "wrong": Show("feedback", text="It was the second", feedback="wrong", keys=(GO_ON,), share=0.3),
        "break": Show("break", "Have a rest", "Shake your hand out.", until=now + 95, share=0.5, keys=(GO_ON,)),
        "pause": Show("pause", "Pause", keys=(GO_ON, Choice("q", "end the session"))),
        "end": Show("end", "Thank you", "The session is over. Please call the experimenter.", share=1.0),
        "dark": Show("interval", "Unseen", interval=1, of=2, dark=True),
    }
