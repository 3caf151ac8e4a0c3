"""Results of a demonstration: picture, film and replay verification, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.gallery.film import Film, write_film
from apps.gallery.showing import Guide, Outcome
from apps.reproduce.report import row_as_json, row_sentence
from apps.reproduce.style import INK
from apps.shared.terminal import wrapped
from apps.verification import examine

if TYPE_CHECKING:
    from haptics.recording.recording import Recording


@dataclass(frozen=True)
class Result:
    """A completed demonstration.

    Attributes
    ----------
    name, title, guide
        Name, title and guide of the demonstration.
    outcome : Outcome
        Its result.
    recordings : sequence of Path
        Recordings of its runs, starting with the run that was shown.
    ticks, mismatches : int
        Ticks of all recordings that were replayed, and ticks whose replay differed.
    picture : Path
        Picture file.
    films : sequence of Path
        Film files.
    """

    name: str
    title: str
    guide: Guide
    outcome: Outcome
    recordings: Sequence[Path]
    ticks: int
    mismatches: int
    picture: Path
    films: Sequence[Path]

    @property
    def holds(self) -> bool:
        """Whether the outcome holds and the replay of every tick agrees."""
        return self.outcome.holds and self.mismatches == 0 and self.ticks > 0

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        outcome = self.outcome
        return {
            "name": self.name,
            "title": self.title,
            "caption": {"do": self.guide.do, "feel": self.guide.feel, "see": self.guide.see},
            "sentence": outcome.sentence,
            "number": outcome.number,
            "unit": outcome.unit,
            "bound": outcome.bound,
            "holds": self.holds,
            "rows": [row_as_json(row) for row in outcome.rows],
            **outcome.facts,
            "recording": str(self.recordings[0]),
            "recordings": [str(folder) for folder in self.recordings],
            "ticks": self.ticks,
            "mismatches": self.mismatches,
            "picture": str(self.picture),
            "films": [str(film) for film in self.films],
        }

    def describe(self) -> str:
        """Return the result as text."""
        outcome = self.outcome
        lines = [
            f"{self.name}: {self.title}",
            f"  do       {self.guide.do}",
            f"  feel     {self.guide.feel}",
            f"  see      {self.guide.see}",
            f"  number   {stated(outcome)}",
            *(f"  {'beside' if row.holds else 'NOT SO'}   {row_sentence(row)}" for row in outcome.rows),
            f"  replay   {self.ticks} ticks of {len(self.recordings)} recordings computed again, "
            f"{self.mismatches} mismatches",
            f"  files    {', '.join(str(path) for path in (self.picture, *self.films, self.recordings[0]))}",
            f"  holds    {'yes' if self.holds else 'NO'}",
        ]
        return wrapped("\n".join(lines), indent=11)


def stated(outcome: Outcome) -> str:
    """Return the number with its bound as text."""
    return f"{outcome.sentence} {outcome.number:.3g} {outcome.unit} (at most {outcome.bound:.3g} {outcome.unit})"


def finish(
    name: str, title: str, guide: Guide, outcome: Outcome, recordings: Sequence[Recording], folder: Path
) -> Result:
    """Replay the recordings, write picture and film into `folder`, and return the result."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = [examine(recording) for recording in recordings]
    picture = folder / f"{name}.png"
    figure = Figure(figsize=(12, 7), dpi=72, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    outcome.draw(figure)
    figure.supxlabel(stated(outcome), x=0.995, ha="right", fontsize=11, color=INK)
    figure.savefig(picture)
    films = write_film(Film(title, stated(outcome), outcome.film), folder / name)
    return Result(
        name,
        title,
        guide,
        outcome,
        [recording.folder for recording in recordings],
        sum(one.ticks for one in found),
        sum(one.mismatches for one in found),
        picture,
        films,
    )
