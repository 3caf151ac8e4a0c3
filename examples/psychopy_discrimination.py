"""Discriminate friction in a two-interval forced choice with PsychoPy's staircase.

The participant moves the handle, and presses button 1 or 2 after the second interval. With ``--simulate`` a simulated
participant answers, in simulated time. PsychoPy is optional: without it, a small staircase with the same interface is
used.

Usage: python psychopy_discrimination.py [--device NAME] [--simulate]
"""

import argparse
import random

import numpy as np

import haptics

try:
    from psychopy.data import StairHandler
except ImportError:

    class StairHandler:  # the part of PsychoPy's class that this example needs, with constant additive steps
        """Staircase: `nDown` correct answers in a row make it harder, `nUp` wrong ones easier."""

        def __init__(self, startVal, *, nTrials, nUp, nDown, stepSizes, stepType, minVal):
            assert stepType == "lin"
            self.intensities, self.reversalIntensities = [], []
            self.level, self.trials, self.up, self.down, self.least = startVal, nTrials, nUp, nDown, minVal
            self.steps, self.run, self.direction = stepSizes, 0, 0

        def __iter__(self):
            while len(self.intensities) < self.trials:
                self.intensities.append(self.level)
                yield self.level

        def addResponse(self, correct):
            """Set the next level by the answer to the present one."""
            self.run = max(self.run, 0) + 1 if correct else min(self.run, 0) - 1
            if self.run in (self.down, -self.up):
                direction = -1 if self.run > 0 else 1
                if direction == -self.direction:
                    self.reversalIntensities.append(self.level)
                step = self.steps[min(len(self.reversalIntensities), len(self.steps) - 1)]
                self.level, self.direction, self.run = max(self.level + direction * step, self.least), direction, 0


STANDARD, INTERVAL, PAUSE = 2.0, 1.5, 0.3  # N, s, s
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--device", default="virtual-joystick")
parser.add_argument("--simulate", action="store_true")
options = parser.parse_args()
rng = random.Random(4)
staircase = StairHandler(1.2, nTrials=24, nUp=1, nDown=2, stepSizes=[0.4, 0.2], stepType="lin", minVal=0.05)


def felt(rows):
    """Return the friction that the simulated participant feels, with noise [N]."""
    moving = np.hypot(*rows["velocity"].T) > 0.02
    return float(np.hypot(*rows["friction_force"][moving].T).mean()) + rng.gauss(0.0, 0.25)


def present(session, marker, force):
    """Present one interval behind the gate and return its rows."""
    tick = session.configure(law=haptics.Coulomb(force))
    session.mark(marker)
    session.gate(open=True)
    session.wait(INTERVAL)
    session.gate(open=False)
    session.wait(PAUSE)
    return session.since(tick)


clock = "off" if options.simulate else "wall"
hand = "minimum-jerk" if options.simulate else ""
with haptics.open_session(options.device, law=haptics.Coulomb(STANDARD), hand=hand, clock=clock) as session:
    session.gate(open=False)
    for number, difference in enumerate(staircase, start=1):
        stronger = rng.choice((1, 2))
        intervals = [present(session, 10 * number + k, STANDARD + difference * (k == stronger)) for k in (1, 2)]
        if options.simulate:
            answer = 1 + int(felt(intervals[1]) > felt(intervals[0]))
        else:
            print("In which interval was the friction stronger? Press button 1 or 2.")
            answer = session.wait_for_button()[0]
        staircase.addResponse(int(answer == stronger))
        print(f"trial {number}: {difference:.2f} N more, {'right' if answer == stronger else 'wrong'}")

threshold = np.mean(staircase.reversalIntensities[1:])
print(f"threshold (70.7 % correct): {threshold:.2f} N, from {len(staircase.reversalIntensities)} reversals")
print(f"recording: {session.folder}, {session.status}")
