"""Results of a demonstration: picture, film and replay verification, as text and JSON."""

from __future__ import annotations

from pathlib import Path

from apps.gallery.film import Film, write_film
from apps.gallery.showing import Guide, Outcome, Showing
from apps.reproduce.report import row_as_json, row_sentence
from apps.reproduce.style import INK
from apps.shared.command import Answer
from apps.shared.terminal import wrapped
from apps.verification import examine


def finish(showing: Showing, title: str, guide: Guide, outcome: Outcome, folder: Path) -> Answer:
    """Replay the recordings, write picture and film into `folder`, and return the result.

    Parameters
    ----------
    showing : Showing
        The demonstration and its recordings, starting with the run that was shown.
    title, guide : str, Guide
        Title and instructions of the demonstration.
    outcome : Outcome
        Its result. It holds only if the replay of every tick agrees, too.
    folder : Path
        Folder of picture and film.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    name, unit = showing.name, outcome.unit
    found = [examine(recording) for recording in showing.recordings]
    ticks, mismatches = sum(one.ticks for one in found), sum(one.mismatches for one in found)
    holds = outcome.holds and mismatches == 0 and ticks > 0
    stated = f"{outcome.sentence} {outcome.number:.3g} {unit} (at most {outcome.bound:.3g} {unit})"
    picture = folder / f"{name}.png"
    figure = Figure(figsize=(12, 7), dpi=72, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    outcome.draw(figure)
    figure.supxlabel(stated, x=0.995, ha="right", fontsize=11, color=INK)
    figure.savefig(picture)
    films = [str(film) for film in write_film(Film(title, stated, outcome.film), folder / name)]
    recordings = [str(recording.folder) for recording in showing.recordings]
    result = {
        "name": name,
        "title": title,
        "caption": {"do": guide.do, "feel": guide.feel, "see": guide.see},
        "sentence": outcome.sentence,
        "number": outcome.number,
        "unit": unit,
        "bound": outcome.bound,
        "holds": holds,
        "rows": [row_as_json(row) for row in outcome.rows],
        **outcome.facts,
        "recording": recordings[0],
        "recordings": recordings,
        "ticks": ticks,
        "mismatches": mismatches,
        "picture": str(picture),
        "films": films,
    }
    lines = [
        f"{name}: {title}",
        f"  do       {guide.do}",
        f"  feel     {guide.feel}",
        f"  see      {guide.see}",
        f"  number   {stated}",
        *(f"  {'beside' if row.holds else 'NOT SO'}   {row_sentence(row)}" for row in outcome.rows),
        f"  replay   {ticks} ticks of {len(recordings)} recordings computed again, {mismatches} mismatches",
        f"  files    {', '.join((str(picture), *films, recordings[0]))}",
        f"  holds    {'yes' if holds else 'NO'}",
    ]
    return Answer(result, wrapped("\n".join(lines), indent=11))
