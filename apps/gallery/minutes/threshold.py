"""Friction threshold in 90 seconds: the visitor repeatedly decides which of two strokes had friction.

The session uses `apps.experiment` (QUEST+, two-interval forced choice, free of response bias), shortened to 24 trials.
The 95 % interval shows the limited precision. A visitor moves the mouse. Without a window, a simulated observer
answers. Its true threshold is known and must be in the interval. This verifies method and analysis and does not replace
a participant.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.experiment.design import design_of
from apps.experiment.observers import make_observer
from apps.experiment.procedures.methods import person_seed
from apps.experiment.session.running import Request, run_session
from apps.experiment.source import Source
from apps.gallery.showing import Guide, Outcome, Scene, Showing
from apps.reproduce.outcome import Bound, Row
from apps.reproduce.style import BLUE, INK, ORANGE, dress
from haptics.recording.recording import Recording

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "your friction threshold in 90 seconds"

GUIDE = Guide(
    do="Twice in a row move the handle to the other side; then press 1 or 2: which stroke had friction?",
    feel="In the beginning it is plain; soon you guess.",
    see="The levels you were given, what you got right, and your threshold with its 95 % interval.",
)

FILE = Path(__file__).with_name("threshold.toml")
CODE, AXIS = "visitor", "law.force"

MOUSE = '[hand]\nname = "mouse"\n'
STROKES = """[hand]
name = "minimum-jerk"
points = [[-0.03, 0.0], [0.03, 0.0]]
speed = 0.25
rest = 0.1
rest_force = 0.0
rest_grip = 1.0
stiffness = 2000.0
damping = 20.0
tremor = 0.02
"""

LENGTH = 90.0
"""Maximum duration of the session [s]."""


def demonstrate(showing: Showing) -> Outcome:
    """Run the session with the visitor if there is a window, otherwise with a simulated observer."""
    person = bool(showing.windows)
    hand = MOUSE if person else STROKES
    design = design_of(Source(FILE, f"{FILE.read_text(encoding='utf-8')}\n{hand}"))
    folders = (showing.folder / f"threshold_{number}" for number in itertools.count(1))
    out = next(folder for folder in folders if not folder.exists())  # every visitor starts a new session
    request = Request(CODE, 1, design.experiment.seed, out, {}, simulated=not person)
    result = run_session(design, request)
    blocks = sorted((Path(result["folder"]) / "blocks").iterdir())
    recordings = [showing.add_recording(Recording(block)) for block in blocks]
    (track,) = result["tracks"].values()
    ticks = sum(len(recording.rows) for recording in recordings)
    seconds = ticks / design.session.session.rate
    low, high = track["interval"]
    rows = [Row("length of the session", Bound(maximum=LENGTH), seconds, 0.0, "s", "guard")]
    if not person:
        observer = make_observer(design.tables.get("observer", {}), seed=person_seed(request.seed, CODE))
        true = observer.truth(AXIS, 0.0)["increment_75"]
        rows.insert(0, Row("true threshold of the simulated observer", Bound(low, high), true, 0.0, "N", "derived"))
    with open(str(result["table"]), encoding="utf-8", newline="") as file:
        counted = [row for row in csv.DictReader(file, delimiter="\t") if row["counts"] == "true"]
    trials = [(float(row["level"]), row["correct"] == "true") for row in counted]
    return Outcome(
        track["estimate"],
        float(design.tables["procedure"]["maximum"]),
        "N",
        f"after {result['trials']} trials the threshold is between {low:.3f} and {high:.3f} N, most likely",
        rows,
        lambda figure: _draw(figure, trials, track),
        [Scene("the strokes", recordings[0].rows)],
        {"threshold_n": track["estimate"], "interval_95_n": [low, high], "simulated": not person},
    )


def _draw(figure: Figure, trials: list[tuple[float, bool]], track: dict[str, Any]) -> None:
    axes = figure.subplots()
    numbers = range(1, len(trials) + 1)
    axes.semilogy(numbers, [level for level, _ in trials], color="#C4C4C4", linewidth=1.0)
    for right, colour, mark, words in ((True, BLUE, "o", "right"), (False, ORANGE, "x", "wrong")):
        chosen = [(number, level) for number, (level, answer) in zip(numbers, trials, strict=True) if answer == right]
        if chosen:
            axes.semilogy(*zip(*chosen, strict=True), mark, color=colour, markersize=9, label=words)
    low, high = track["interval"]
    axes.axhspan(low, high, color=BLUE, alpha=0.12, label="95 % interval")
    axes.axhline(track["estimate"], color=INK, linestyle="--", label=f"threshold {track['estimate']:.3f} N")
    axes.legend(loc="upper right")
    dress(axes, "trial", "friction [N]", TITLE)
