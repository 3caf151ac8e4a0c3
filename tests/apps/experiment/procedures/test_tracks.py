from __future__ import annotations

from collections import Counter

from apps.experiment.procedures import Tracks, make_procedure, trial_seed

SEED = trial_seed(3, "P01", 1, 1, 0)


def make(lengths: tuple[int, ...], seed: int = 3) -> Tracks:
    tables = [{"kind": "series", "level": 1.0 + k, "trials": length} for k, length in enumerate(lengths)]
    series = [make_procedure(table, guess=0.5, seed=SEED) for table in tables]
    return Tracks(series, trial_seed(seed, "P01", 1, 1, 0))


def run(tracks: Tracks) -> list[int]:
    order = []
    while not tracks.finished:
        track, level = tracks.next()
        assert (track, level) == tracks.next() == (track, 1.0 + track)
        tracks.take(track, level, True)
        order.append(track)
    return order


def test_each_track_has_one_trial_a_round_until_it_is_finished() -> None:
    order = run(make((20, 20, 5)))
    assert Counter(order) == {0: 20, 1: 20, 2: 5}
    assert all(sorted(order[k : k + 3]) == [0, 1, 2] for k in range(0, 15, 3))
    assert all(sorted(order[k : k + 2]) == [0, 1] for k in range(15, 45, 2))


def test_the_order_of_a_round_does_not_depend_on_how_long_other_tracks_are() -> None:
    long, short = run(make((20, 20, 20))), run(make((20, 20, 5)))
    rounds = [[track for track in long[3 * k : 3 * k + 3] if track < 2 or k < 5] for k in range(20)]
    assert short == [track for each in rounds for track in each]


def test_the_order_is_that_of_the_seed() -> None:
    assert run(make((20, 20))) == run(make((20, 20)))
    assert run(make((20, 20))) != run(make((20, 20), seed=4))


def test_all_tracks_report() -> None:
    tracks = make((2, 3))
    run(tracks)
    assert [report["trials"] for report in tracks.report()] == [2, 3]
