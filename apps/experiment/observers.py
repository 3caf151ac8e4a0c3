"""Simulated observers that answer an experiment for tests, rehearsals and planning.

They do not replace participants. An observer of level 1 answers by signal detection (Green and Swets 1966) from the
specified stimuli, an observer of level 2 from the recorded forces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from apps.experiment.trial import Answer, TrialView
from haptics.errors import ConfigurationError
from haptics.records import Rows
from haptics.settings import bounded, build, check, documented, unrestricted

Array = NDArray[np.float64]

Z75 = 0.6744897501960817
"""75 % quantile of the standard normal distribution."""


@dataclass(frozen=True)
class Acuity:
    """Discrimination acuity on an axis.

    Attributes
    ----------
    weber : float
        Increment with 75 % correct in two intervals, relative to the reference.
    floor : float
        The same increment without a reference, in units of the axis.
    """

    weber: float
    floor: float

    def increment(self, reference: float) -> float:
        """Return the increment J with 75 % correct: J^2 = (weber x reference)^2 + floor^2."""
        return math.hypot(self.weber * reference, self.floor)


_FORCE, _VISCOSITY, _OTHER = Acuity(0.10, 0.05), Acuity(0.23, 1.0), Acuity(0.20, 0.0)
_COEFFICIENT = Acuity(0.18, 0.043)

USUAL: dict[str, Acuity] = {
    "law.force": _FORCE,
    "law.kinetic_force": _FORCE,
    "law.static_force": _FORCE,
    "law.viscosity": _VISCOSITY,
    "element.damping": _VISCOSITY,
    "element.stiffness": _OTHER,
    "element.mass": _OTHER,
    "wall.friction": _COEFFICIENT,
    "wall.stiffness": _OTHER,
    "texture.amplitude": Acuity(0.08, 0.0),
    "texture.wavelength": _OTHER,
}
"""Typical acuity of each axis.

Force 7 to 20 % (Pang, Tan and Durlach 1991: 7 %), viscosity 23 % (Jones, Hunter and Lafontaine 1997), stiffness and
mass about 20 % (Jones and Hunter 1990; Beauregard and Srinivasan). The floors of 0.05 N and 1 N s/m are assumptions of
this project, and so are the 20 % for the wavelength of a texture. Friction coefficients: 0.056 on 0.2 and 0.150 on 0.8,
the ends of the range in Provancher and Sylvester (2009). Amplitude of a texture: 6.2 to 9.8 % (Wu et al. 2012).
"""


@documented
@dataclass(frozen=True)
class ObserverSettings:
    """Table ``observer``: typical simulated observer, about which individuals are distributed."""

    level: int = bounded(
        1, minimum=1, maximum=2, doc="1: answers by the requested stimulus; 2: answers by the recorded force"
    )
    weber: Any = unrestricted(
        None, "a number greater than 0", doc="Weber fraction at 75 % correct; none: typical value for the axis"
    )
    floor: Any = unrestricted(
        None,
        "a number of at least 0",
        doc="smallest increment at 75 % correct, in units of the axis; none: typical value",
    )
    lapse: float = bounded(0.02, minimum=0.0, maximum=0.3, doc="lapse rate: share of wrong answers to obvious stimuli")
    spread: float = bounded(
        0.3, minimum=0.0, maximum=2.0, doc="standard deviation between people, as a share of the mean"
    )
    order_bias: float = bounded(
        0.0, minimum=-3.0, maximum=3.0, doc="preference for the second interval, in standard deviations of a comparison"
    )
    false_alarms: float = bounded(
        0.16, above=0.0, maximum=0.499, doc="share of answers yes, or different, without a stimulus, before lapses"
    )
    exponent: float = bounded(
        1.0, minimum=-5.0, maximum=5.0, doc="exponent of magnitude estimates (Stevens); negative if they fall"
    )
    exponent_spread: float = bounded(
        0.0, minimum=0.0, maximum=2.0, doc="standard deviation of the exponent between people, as a share of the mean"
    )
    estimate_spread: float = bounded(
        0.15, minimum=0.0, maximum=2.0, doc="standard deviation of the logarithm of magnitude estimates"
    )
    drift: float = bounded(
        0.0,
        minimum=0.0,
        maximum=2.0,
        doc="slow change of the threshold in a session: standard deviation of its logarithm",
    )
    drift_trials: float = bounded(100.0, minimum=2.0, maximum=1e5, doc="trials in a period of the slow change, a sine")
    reaction_time: float = bounded(0.6, above=0.0, maximum=60.0, unit="s", doc="median reaction time")
    reaction_spread: float = bounded(
        0.3, minimum=0.0, maximum=2.0, doc="standard deviation of the logarithm of reaction times"
    )
    integration: float = bounded(0.5, above=0.0, maximum=10.0, unit="s", doc="level 2: sliding time of an estimate")
    sampling: float = bounded(
        0.01, above=0.0, maximum=1.0, unit="s", doc="level 2: time between two samples of the force"
    )
    least_speed: float = bounded(
        0.02, minimum=0.0, maximum=1.0, unit="m/s", doc="level 2: speed below which motion is not sliding"
    )

    def __post_init__(self) -> None:
        check(self, "observer")
        if self.exponent == 0.0:
            raise ConfigurationError("observer.exponent = 0: must not be 0; the estimates would depend on nothing.")
        for name, least in (("weber", math.ulp(0.0)), ("floor", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and least <= value < math.inf):
                word = "greater than 0" if least else "of at least 0"
                raise ConfigurationError(f"observer.{name} = {value!r}: must be a number {word}.")

    def acuity(self, axis: str) -> Acuity:
        """Return the acuity of the typical observer.

        Raises
        ------
        ConfigurationError
            If the axis has no typical acuity and the settings contain none.
        """
        usual = USUAL.get(axis)
        if usual is None and self.weber is None:
            raise ConfigurationError(
                f"observer.weber is missing: no Weber fraction is usual for {axis}; give one, such as 0.2."
            )
        weber = self.weber if self.weber is not None else usual.weber if usual else 0.0
        floor = self.floor if self.floor is not None else usual.floor if usual else 0.0
        return Acuity(float(weber), float(floor))


_NORMAL = NormalDist()

ROOT_2 = math.sqrt(2.0)
"""Ratio of the standard deviations of a comparison and of a single presentation, and of d' and z."""


def phi(z: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-z / ROOT_2)


def yes_criterion(false_alarms: float) -> float:
    """Return the criterion of ``yes``, in standard deviations of a presentation."""
    return -_NORMAL.inv_cdf(false_alarms)


def different_criterion(false_alarms: float) -> float:
    """Return the two-sided criterion of ``different``, in standard deviations of the difference."""
    return -_NORMAL.inv_cdf(0.5 * false_alarms)


def different(z: float, false_alarms: float) -> float:
    """Return the probability of ``different`` by the differencing rule (Macmillan et al. 1977)."""
    criterion = different_criterion(false_alarms)
    return phi(z - criterion) + phi(-z - criterion)


class SimulatedObserver:
    """Simulated observer with P(correct) = lapse + (1 - 2 lapse) Phi(0.6745 dx/J) in two intervals.

    J^2 = (w75 x)^2 + J0^2 is the increment on the reference x with 75 % correct without lapses. With w75 = 0.23 this
    reproduces both values of Jones, Hunter and Lafontaine (1997) for viscosity, 19 % at 71 % and 34 % at 84 %.

    Parameters
    ----------
    settings : ObserverSettings
        Settings of the typical observer.
    rng : Generator
        Random generator for the individual acuity, modulus and exponent of magnitude estimates, and course of a drift.

    Attributes
    ----------
    acuity_factor : float
        Weber fraction and floor, relative to the typical ones. The median over observers is 1.
    modulus, exponent : float
        Factor and exponent of magnitude estimates.
    phase : float
        Phase of the drift at the beginning of a session [rad].
    needs_rows : bool
        Whether the observer evaluates recorded rows.
    """

    needs_rows = False

    def __init__(self, settings: ObserverSettings, rng: np.random.Generator) -> None:
        self.settings = settings
        log_spread = math.sqrt(math.log1p(settings.spread**2))  # of the acuity between observers
        self.acuity_factor = math.exp(log_spread * float(rng.standard_normal()))
        self.modulus = 10.0 * math.exp(0.5 * float(rng.standard_normal()))
        log_spread = math.sqrt(math.log1p(settings.exponent_spread**2))
        self.exponent = settings.exponent * math.exp(log_spread * float(rng.standard_normal()))
        self.phase = 2.0 * math.pi * float(rng.random())

    def acuity(self, axis: str) -> Acuity:
        """Return the acuity of this observer."""
        typical = self.settings.acuity(axis)
        return Acuity(typical.weber * self.acuity_factor, typical.floor * self.acuity_factor)

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return the parameters that an analysis should recover for this observer.

        ``increment_75`` is the increment with 75 % correct in two intervals without lapses; with a drift, the one about
        which it changes. ``weber_fraction_75`` is its ratio to the reference, None without a reference.
        ``adjustment_sd`` is the standard deviation of adjustments.
        """
        acuity = self.acuity(axis)
        increment = acuity.increment(reference)
        return {
            "observer": self.settings.level,
            "w75": acuity.weber,
            "floor": acuity.floor,
            "increment_75": increment,
            "weber_fraction_75": increment / reference if reference > 0.0 else None,
            "adjustment_sd": increment / Z75,
            "lapse": self.settings.lapse,
            "order_bias": self.settings.order_bias,
            "exponent": self.exponent,
            **({"drift": self.settings.drift} if self.settings.drift else {}),
        }

    def probability(self, trial: TrialView) -> float:
        """Return the probability of the response ``2``, ``yes`` or ``different``, depending on the task."""
        settings, unit = self.settings, self._unit(trial)
        if trial.task == "detection":
            criterion = yes_criterion(settings.false_alarms)
            p = phi(ROOT_2 * _ratio(trial.values[0] - trial.reference, unit) - criterion)
        elif trial.task == "same-different":
            p = different(_ratio(trial.values[1] - trial.values[0], unit), settings.false_alarms)
        else:
            p = phi(_ratio(trial.values[1] - trial.values[0], unit) + settings.order_bias)
        return settings.lapse + (1.0 - 2.0 * settings.lapse) * p

    def _unit(self, trial: TrialView) -> float:
        """Return the standard deviation of a comparison of two presentations, in units of the axis."""
        return self.acuity(trial.axis).increment(trial.reference) * self.drift_factor(trial.number) / Z75

    def drift_factor(self, number: int) -> float:
        """Return the increment with 75 % correct in trial `number` of a session, relative to the usual one."""
        settings = self.settings
        course = math.sin(2.0 * math.pi * number / settings.drift_trials + self.phase)
        return math.exp(settings.drift * ROOT_2 * course)

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial, with all random numbers from `rng`."""
        if trial.task == "adjustment":
            adjusted = trial.reference + self._unit(trial) * float(rng.standard_normal())
            response: str | float = max(adjusted, _LEAST * trial.reference)
        elif trial.task == "estimation":
            response = self.estimate(trial.values[0], rng)
        else:
            response = word(trial.task, bool(rng.random() < self.probability(trial)))
        return Answer(response, self.reaction_time(rng))

    def reaction_time(self, rng: np.random.Generator) -> float:
        """Draw a reaction time [s], log-normal."""
        settings = self.settings
        return settings.reaction_time * math.exp(settings.reaction_spread * float(rng.standard_normal()))

    def estimate(self, value: float, rng: np.random.Generator) -> float:
        """Draw a magnitude estimate of a value."""
        noise = math.exp(self.settings.estimate_spread * float(rng.standard_normal()))
        return float(self.modulus * value**self.exponent * noise)


_LEAST = 0.01
"""Lower bound of adjustments, relative to the reference."""

_WORDS = {"detection": ("no", "yes"), "same-different": ("same", "different")}


def word(task: str, second: bool) -> str:
    """Return the first or second response of a task with two responses."""
    return _WORDS.get(task, ("1", "2"))[second]


def _ratio(difference: float, unit: float) -> float:
    """Return difference/unit, also for an observer without noise (unit 0)."""
    if unit > 0.0:
        return difference / unit
    return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)


_SLIDING, _SLOPE, _PEAK = "mean force while sliding", "force divided by speed", "highest force"

FEELINGS = {
    "law.force": _SLIDING,
    "law.kinetic_force": _SLIDING,
    "law.static_force": _PEAK,
    "law.viscosity": _SLOPE,
}
"""Force statistic by which an observer decides, for each supported axis."""


class FeelingObserver(SimulatedObserver):
    """Simulated observer that decides by the recorded force instead of the specified stimulus.

    In each interval it samples the force against the motion of the hand, every ``sampling`` seconds of sliding, up to
    ``integration`` seconds in total. The noise of the samples is independent. Its size gives the estimate of a full
    interval the noise of a presentation at level 1: J/(0.6745 sqrt 2) with J at the felt force. The differences from
    level 1 are the effects of the device, its friction and the motion of the hand on the force, and less precise
    estimates in intervals with little sliding.

    Parameters
    ----------
    settings : ObserverSettings
        Settings of the typical observer.
    rng : Generator
        Random generator for the individual acuity.
    """

    needs_rows = True

    def answer(self, trial: TrialView, rng: np.random.Generator) -> Answer:
        """Return the answer to a trial with rows, with all random numbers from `rng`.

        Raises
        ------
        ConfigurationError
            If the trial has no rows, or the axis is not supported.
        """
        if trial.task == "adjustment":
            return super().answer(trial, rng)  # an adjustment involves no comparison of intervals
        if trial.rows is None:
            raise ConfigurationError(
                "observer.level = 2: answers by recorded rows, and this trial has none; take observer.level = 1."
            )
        settings, unit = self.settings, self._unit(trial)
        felt = [self.felt_stimulus(trial, rows, rng) for rows in trial.rows]
        if trial.task == "estimation":
            return Answer(self.estimate(max(felt[0], 1e-9), rng), self.reaction_time(rng))
        if rng.random() < 2.0 * settings.lapse:
            second = bool(rng.random() < 0.5)
        elif trial.task == "detection":
            second = felt[0] - trial.reference > yes_criterion(settings.false_alarms) * unit / ROOT_2
        elif trial.task == "same-different":
            second = abs(felt[1] - felt[0]) > different_criterion(settings.false_alarms) * unit
        else:
            second = felt[1] - felt[0] + settings.order_bias * unit > 0.0
        return Answer(word(trial.task, second), self.reaction_time(rng))

    def felt_stimulus(self, trial: TrialView, rows: Rows, rng: np.random.Generator) -> float:
        """Return the estimate of the stimulus in an interval, in units of the axis, or 0 without sliding."""
        feeling = _feeling(trial.axis)
        force, speed, period = felt_force(rows, self.settings.least_speed, sliding=feeling is not _PEAK)
        if not len(force):
            return 0.0
        wanted = max(round(self.settings.integration / self.settings.sampling), 1)
        apart = max(round(self.settings.sampling / period), 1)
        count = min(wanted, max(len(force) // apart, 1))
        places = np.linspace(0, len(force) - 1, count).round().astype(int)
        samples = force[places] / (speed[places] if feeling is _SLOPE else 1.0)
        if feeling is _PEAK:
            samples = np.full(count, highest(force, max(round(_SMOOTHING / period), 1)))
        # The mean of `wanted` samples has the noise of a presentation.
        acuity = self.acuity(trial.axis)
        increment = np.hypot(acuity.weber * samples, acuity.floor) * self.drift_factor(trial.number)
        noise = increment / (Z75 * ROOT_2) * math.sqrt(wanted) * rng.standard_normal(len(samples))
        return float(np.mean(samples + noise))

    def truth(self, axis: str, reference: float) -> dict[str, Any]:
        """Return the parameters that an analysis should recover, and the force statistic."""
        return super().truth(axis, reference) | {"feels": _feeling(axis)}


_SMOOTHING = 0.02
"""Averaging time of the peak force [s]."""


def felt_force(rows: Rows, least_speed: float, *, sliding: bool = True) -> tuple[Array, Array, float]:
    """Return the force against the motion [N] and the speed [m/s] at each tick, and the period [s].

    The force is the hand force if known, otherwise the computed friction. Only ticks with a fully open gate are
    included. With `sliding`, ticks at or below `least_speed` are excluded. Otherwise the force is its magnitude,
    independent of the motion.
    """
    up = rows["gate"] >= 1.0
    times, velocity, hand = rows["time"][up], rows["velocity"][up], rows["hand_force"][up]
    period = float(times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1e-3
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    force = hand if np.isfinite(hand).all() else rows["friction_force"][up]
    if not sliding:
        return np.hypot(force[:, 0], force[:, 1]), speed, period
    moving = speed > max(least_speed, 1e-9)
    along = (force[moving] * velocity[moving]).sum(axis=1) / speed[moving]
    return along, speed[moving], period


def highest(force: Array, width: int) -> float:
    """Return the highest moving average of `width` samples of an (n,) array [N]."""
    width = min(width, len(force))
    sums = np.cumsum(np.concatenate(([0.0], force)))
    return float(np.max(sums[width:] - sums[:-width]) / width)


def _feeling(axis: str) -> str:
    if axis not in FEELINGS:
        raise ConfigurationError(
            f"observer.level = 2: does not know how {axis} is felt; it knows {', '.join(FEELINGS)}. Take level 1."
        )
    return FEELINGS[axis]


def make_observer(table: Mapping[str, Any], *, seed: SeedSequence) -> SimulatedObserver:
    """Return the simulated observer described by a table.

    Parameters
    ----------
    table : mapping
        Table ``observer`` of an experiment file, empty for the typical observer.
    seed : SeedSequence
        Seed of the observer, the same in all sessions: `apps.experiment.procedures.person_seed`.

    Raises
    ------
    ConfigurationError
        If the table is invalid.
    """
    settings = build(ObserverSettings, table, "observer")
    kind = FeelingObserver if settings.level == 2 else SimulatedObserver
    return kind(settings, np.random.default_rng(seed))
