"""A window with the simulated run of the tests in it, paused or not as a test likes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.apps.view.driving import frames, publish


@pytest.fixture
def shown(live, rows) -> SimpleNamespace:
    """The live window with the first six seconds of the run."""
    live.begin(mouse=False, law="coulomb")
    publish(live.trace, rows[:6000])
    frames(live)
    return SimpleNamespace(**vars(live), dashboard=live.window.dashboard, history=live.window._feed.history)


@pytest.fixture
def place(shown):
    """A function that shows the plot of a name in the lower place at the right, and returns it."""

    def choose(name: str):
        places = shown.dashboard.places
        for plot in places.visible:
            if plot.name == name:
                return plot
        title = next(title for title, kind in places.kinds.items() if kind.name == name)
        places.choose(places.shown[2], title)
        frames(shown)
        return places.plot(title)

    return choose
