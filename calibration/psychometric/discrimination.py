"""Results of discrimination and detection experiments: JND, PSE, Weber fraction, order bias, d' and criterion.

A just noticeable difference (JND) is meaningful only with the proportion at which it is defined: values between 0.95
and 1.47 times that at 75 % are common. Therefore each function requires the proportion.

Detectability d' and criterion follow from hits and false alarms.

Rates have the posterior Beta(count + 1/2, others + 1/2) of Jeffreys' prior. Intervals are based on the pair of
independent rates, so that a rate of 0 or 1 gives a large but finite d' with a wide interval. Formulas: Macmillan and
Creelman 2005, Detection Theory, 2nd ed., chapters 1, 2, 7 and 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.psychometric.estimate import USUAL_PROBABILITY, Estimate, Kind, interval_of, make_answers
from calibration.psychometric.fit import PsychometricFit, fit_psychometric
from calibration.psychometric.posterior import LAPSES, RatePrior
from haptics.errors import ConfigurationError


def pse(fit: PsychometricFit, probability: float = USUAL_PROBABILITY) -> Estimate:
    """Return the point of subjective equality, where half of the responses are "the comparison is more".

    Parameters
    ----------
    fit : PsychometricFit
        Fit of responses "the comparison is more" at signed levels or at values, with guess ``lapse``, ``free`` or 0.
    probability : float
        Probability of the interval, as in `PsychometricFit.threshold`.
    """
    floor = fit.posterior.prior.floor
    if floor > 0.0:
        raise ConfigurationError(
            "A point of subjective equality needs answers that run from never to always, and with guess = "
            f'{floor:g} they begin there; fit "the comparison is more" with guess="lapse".'
        )
    return fit.threshold(0.5, probability)


def jnd(
    fit: PsychometricFit, proportion: float, probability: float = USUAL_PROBABILITY, kind: Kind = "median"
) -> Estimate:
    """Return the just noticeable difference at a given proportion of correct responses.

    With a known guess rate (levels are increments), it is the level at which this proportion is correct. With responses
    "the comparison is more" (guess ``lapse``, ``free`` or 0), it is the distance from the point of subjective equality
    at which this proportion of responses is "more".

    Parameters
    ----------
    fit : PsychometricFit
    proportion : float
        Proportion such as 0.75; between 1/2 and 1 for responses "the comparison is more".
    probability, kind
        As in `PsychometricFit.threshold`.
    """
    if fit.posterior.prior.floor > 0.0:
        return fit.threshold(proportion, probability, kind)
    if not 0.5 < proportion < 1.0:
        raise ConfigurationError(f"proportion = {proportion!r}: must be greater than 0.5 and less than 1.")
    posterior = fit.posterior
    upper, middle = posterior.positions_at(proportion), posterior.positions_at(0.5)
    if posterior.shape.scale == "log":
        upper, middle = np.exp(upper), np.exp(middle)
    return posterior.of_plane(upper - middle, probability, kind)


def weber_fraction(
    fit: PsychometricFit,
    reference: float | Estimate,
    proportion: float,
    probability: float = USUAL_PROBABILITY,
    kind: Kind = "median",
) -> Estimate:
    """Return the just noticeable difference at a given proportion, divided by the reference.

    Parameters
    ----------
    fit : PsychometricFit
        Fit with levels in the unit of the reference.
    reference : float or Estimate
        Reference, greater than 0. The interval of an estimate, such as a perceived reference, is propagated.
    proportion, probability, kind
        As in `jnd`.
    """
    if isinstance(reference, Estimate):
        return jnd(fit, proportion, probability, kind).over(reference)
    if not reference > 0.0:
        raise ConfigurationError(f"reference = {reference!r}: a Weber fraction needs one greater than 0.")
    return jnd(fit, proportion, probability, kind).scaled(1.0 / reference)


@dataclass(frozen=True)
class OrderBias:
    """Effect of the order of two intervals on the responses.

    Attributes
    ----------
    level : Estimate
        Perceived excess of a stimulus in the second interval over the same stimulus in the first, in units of the
        level.
    preference : Estimate
        Proportion of responses "second" minus 1/2, for equally frequent orders of the comparison.
    fit : PsychometricFit
        Fit of the responses "second is more" to the increment of the second interval over the first. Its differences
        are free of this bias.
    """

    level: Estimate
    preference: Estimate
    fit: PsychometricFit


def order_bias(
    levels: ArrayLike,
    comparison_interval: ArrayLike,
    correct: ArrayLike,
    *,
    lapse_prior: RatePrior | float = LAPSES,
    probability: float = USUAL_PROBABILITY,
) -> OrderBias:
    """Estimate the order bias of two-interval trials from responses and comparison intervals.

    The increment of the second interval over the first is the level if the comparison is second, and minus the level if
    it is first; the point of subjective equality of "second is more" is then minus the bias (Garcia-Perez and
    Alcala-Quintana 2011, Front. Psychol. 2:96; difference model without a guessing region).

    Parameters
    ----------
    levels : (n,) array-like
        Increment of the comparison over the reference in each trial, at least 0.
    comparison_interval : (n,) array-like of 1 and 2
    correct : (n,) array-like of bool
    lapse_prior
        As in `fit_psychometric`.
    probability : float
        Probability of the intervals.

    Raises
    ------
    ConfigurationError
        If the columns do not match, or the comparison was never in one of the two intervals.
    """
    right = np.asarray(correct, dtype=float)
    answers = make_answers(levels, right, np.ones_like(right))
    order = np.argsort(np.asarray(levels, dtype=float), kind="stable")
    second = np.asarray(comparison_interval)[order] == 2
    if second.all() or not second.any():
        raise ConfigurationError("comparison_interval: an order bias needs trials with the comparison in 1 and in 2.")
    steps = np.where(second, answers.levels, -answers.levels)
    said_second = np.where(second, answers.correct, answers.wrong)
    fit = fit_psychometric(steps, said_second, answers.total, guess="lapse", lapse_prior=lapse_prior)
    point, opposite = pse(fit, probability), {"": "", "above": "below", "below": "above"}
    bound: Any = opposite[point.bound]
    # the mean proportion of "second" over the two orders minus 1/2, with equal levels in both
    shares = [rate_grid(int(said_second[rows].sum()), int(rows.sum())) for rows in (second, ~second)]
    both = 0.5 * (shares[0][:, None] + shares[1]) - 0.5
    bias = Estimate(-point.value, -point.high, -point.low, probability, bound)
    return OrderBias(bias, interval_of(both, np.ones_like(both), probability), fit)


@dataclass(frozen=True)
class ImpedanceDifferences:
    """Just noticeable differences of an impedance in oscillating motion.

    Fu et al. (TU Delft 2018) found that a change dH of the frequency response H = K - M w^2 + i B w is just noticeable
    if |dH| = c |H|, whichever part of H changes.

    Attributes
    ----------
    stiffness, damping, mass : float
        Just noticeable change of each parameter alone [N/m], [N s/m], [kg].
    """

    stiffness: float
    damping: float
    mass: float


def impedance_differences(
    stiffness: float, damping: float, mass: float, frequency: float, fraction: float
) -> ImpedanceDifferences:
    """Return the just noticeable differences of an impedance.

    Parameters
    ----------
    stiffness, damping, mass : float
        Reference [N/m], [N s/m], [kg], at least 0 and not all of them 0.
    frequency : float
        Frequency of the motion [Hz], greater than 0.
    fraction : float
        Just noticeable fraction of |H|, greater than 0: the Weber fraction of force for a prescribed motion.

    Raises
    ------
    ConfigurationError
        If a value is out of range.
    """
    for name, value in (("stiffness", stiffness), ("damping", damping), ("mass", mass)):
        if not 0.0 <= value < math.inf:
            raise ConfigurationError(f"{name} = {value!r}: must be a finite number of at least 0.")
    for name, value in (("frequency", frequency), ("fraction", fraction)):
        if not 0.0 < value < math.inf:
            raise ConfigurationError(f"{name} = {value!r}: must be a finite number greater than 0.")
    if not (stiffness or damping or mass):
        raise ConfigurationError("stiffness, damping and mass are all 0: there is nothing to be felt.")
    w = 2.0 * math.pi * frequency
    noticeable = fraction * math.hypot(stiffness - mass * w**2, damping * w)
    return ImpedanceDifferences(noticeable, noticeable / w, noticeable / w**2)


# --- detection --------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Task = Literal["yes-no", "2afc", "same-different"]

_TASKS = ("yes-no", "2afc", "same-different")

_POINTS = 200
"""Number of equally probable points of each rate's posterior."""

_LARGEST = 12.0
"""Maximum d' that a realistic number of trials can distinguish."""


@dataclass(frozen=True)
class Detectability:
    """Detectability and criterion.

    Attributes
    ----------
    d_prime : Estimate
        Distance of the stimuli in standard deviations of one presentation.
    criterion : Estimate
        Bias towards "no" ("first", "same") if greater than 0 [standard deviations].
    """

    d_prime: Estimate
    criterion: Estimate


def detectability(
    hits: int,
    misses: int,
    false_alarms: int,
    correct_rejections: int,
    *,
    task: Task = "yes-no",
    probability: float = USUAL_PROBABILITY,
) -> Detectability:
    """Return d' and criterion of a task.

    Parameters
    ----------
    hits, misses : int
        Responses to the signal: "yes" and "no"; in two intervals, "second" and "first" with the signal in the second;
        "different" and "same" to different pairs.
    false_alarms, correct_rejections : int
        The same responses without the signal; with the signal in the first; to equal pairs.
    task : str
        ``yes-no``, ``2afc`` or ``same-different`` (differencing rule: pairs seem different if their difference exceeds
        a criterion, which is returned).
    probability : float
        Probability of the intervals.

    Raises
    ------
    ConfigurationError
        If a count is invalid, or one of the stimuli was never presented.
    """
    from scipy.special import ndtr, ndtri

    if task not in _TASKS:
        raise ConfigurationError(f"task = {task!r}: must be one of {', '.join(_TASKS)}.")
    hit = rate_grid(hits, hits + misses)[:, None]
    false_alarm = rate_grid(false_alarms, false_alarms + correct_rejections)[None, :]
    if task == "same-different":
        # F = 2 Phi(-k/sqrt(2)) and H = Phi((d'-k)/sqrt(2)) + Phi((-d'-k)/sqrt(2)) for the criterion k, by bisection
        bias = -np.sqrt(2.0) * ndtri(0.5 * false_alarm)
        low = np.zeros(np.broadcast_shapes(hit.shape, bias.shape))
        high = np.full_like(low, _LARGEST)
        for _ in range(40):
            middle = 0.5 * (low + high)
            less = ndtr((middle - bias) / np.sqrt(2.0)) + ndtr((-middle - bias) / np.sqrt(2.0)) < hit
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        distance = 0.5 * (low + high)
    else:
        # c = -(z(H) + z(F))/2; in two intervals the difference of two presentations has twice the variance
        distance, bias = ndtri(hit) - ndtri(false_alarm), -0.5 * (ndtri(hit) + ndtri(false_alarm))
        distance = distance / np.sqrt(2.0) if task == "2afc" else distance
    even = np.ones((_POINTS, _POINTS))
    estimates = [interval_of(np.broadcast_to(values, even.shape), even, probability) for values in (distance, bias)]
    return Detectability(*estimates)


def rate_grid(count: int, total: int) -> Array:
    """Return equally probable values of a rate given `count` of `total` (Jeffreys' prior)."""
    from scipy.special import betaincinv

    if total <= 0 or not 0 <= count <= total:
        raise ConfigurationError(f"{count} of {total}: each kind of trial must have been shown at least once.")
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(np.clip(betaincinv(count + 0.5, total - count + 0.5, middles), 1e-12, 1.0 - 1e-12))
