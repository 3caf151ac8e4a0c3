"""Run trials of your own with the procedures, the journal and the exports of Haptics.

Two intervals with different friction in each trial; a staircase of `apps.experiment` chooses the difference. The
participant presses button 1 or 2 of the device; with ``--simulate`` a simulated participant answers, in simulated time.
After an interruption, run the same command again: the session continues with the trial at which it was.

Usage: python own_trials.py FOLDER PARTICIPANT [--device NAME] [--simulate]
"""

import argparse
import random
from pathlib import Path

import numpy as np

import haptics
from apps.experiment import TrialLog, export_sessions, make_procedure, trial_rows, trial_seed
from calibration.psychometric import fit_psychometric

SEED, STANDARD, INTERVAL, PAUSE = 7, 2.0, 1.5, 0.3  # -, N, s, s
STAIRCASE = {
    **{"kind": "staircase", "start": 1.2, "minimum": 0.02, "maximum": 2.0, "scale": "log", "steps": [0.3, 0.1]},
    **{"down": 2, "reversals": 12, "dropped": 4, "trials": 60},
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=Path)
parser.add_argument("participant")
parser.add_argument("--device", default="virtual-joystick")
parser.add_argument("--simulate", action="store_true")
options = parser.parse_args()


def present(session, marker, force):
    """Present one interval behind the gate and return the friction that was rendered while moving [N]."""
    tick = session.configure(law=haptics.Coulomb(force))
    session.mark(marker)
    session.gate(open=True)
    session.wait(INTERVAL)
    session.gate(open=False)
    session.mark(0)
    session.wait(PAUSE)
    rows = session.since(tick)
    moving = np.hypot(*rows["velocity"].T) > 0.02
    return np.hypot(*rows["friction_force"][moving].T).mean()


staircase = make_procedure(STAIRCASE, guess=0.5, seed=trial_seed(SEED, options.participant, 1, 1, 0))
log = TrialLog.open(
    options.folder,
    options.participant,
    "friction differences",
    axis="law.force",
    seed=SEED,
    design={"standard": STANDARD, "interval": INTERVAL, "procedure": STAIRCASE},
    device=options.device,
    observer="example" if options.simulate else "",
)
way = {"hand": "minimum-jerk", "clock": "off"} if options.simulate else {}
with log, haptics.open_session(options.device, record=log.place.folder / "blocks", **way) as session:
    print(f"{log.replay(staircase)} trials were run before")
    log.begin_block(session.folder)
    session.gate(open=False)
    while not staircase.finished:
        level = staircase.level()
        rng = random.Random(f"{SEED} {options.participant} {staircase.trials}")
        stronger = rng.choice((1, 2))
        forces = [STANDARD + level * (k == stronger) for k in (1, 2)]
        trial, markers = log.begin_trial(level, values=forces, comparison=stronger, reference=STANDARD)
        felt = [present(session, *one) for one in zip(markers, forces, strict=True)]
        if options.simulate:
            answer, tick = 1 + (felt[1] + rng.gauss(0.0, 0.6) > felt[0]), None
        else:
            print("In which interval was the friction stronger? Press button 1 or 2.")
            answer, tick = session.wait_for_button()
        correct = answer == stronger
        log.finish_trial(str(answer), correct=correct, tick=tick, source="observer" if options.simulate else "button")
        staircase.add_outcome(level, correct)
        print(f"trial {trial}: {level:.2f} N more, {'right' if correct else 'wrong'}", flush=True)
    session.stop()  # the recording is complete before the table is made from it
    log.finish()

rows = [row for row in trial_rows(log.place) if row["counts"]]
export_sessions([options.folder], options.folder / "export", to="csv")
answers = zip(*((row["level"], row["correct"], 1) for row in rows), strict=True)
fit = fit_psychometric(*answers, guess=0.5, scale="log")
threshold = fit.threshold(0.75)
print(f"threshold (75 % correct): {threshold.value:.2f} N, 95 % interval {threshold.low:.2f} to {threshold.high:.2f} N")
print(f"delivered exactly in {sum(bool(row['delivered_exact']) for row in rows)} of {len(rows)} trials")
