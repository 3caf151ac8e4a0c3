"""Independent fits of the same answers, for comparison: SweetSpot, Psychofit, BayesFit, and a plain SciPy optimiser.

``python -m tests.calibration.psychometric.oracles`` writes oracles.json anew where the first three are installed
(``pip install sweetspot==1.15.1 psychofit==1.0.0 bayesfit==2.4``: CC0-1.0, MIT, Apache-2.0).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special, stats

GOLDEN = Path(__file__).with_name("oracles.json")

LEVELS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.45]
DATA: dict[str, tuple[list[float], list[int], list[int]]] = {
    "30 a level": (LEVELS, [16, 20, 22, 23, 27, 30], [30] * 6),
    "200 a level": (LEVELS, [109, 128, 146, 160, 183, 196], [200] * 6),
    "uneven": (LEVELS, [9, 41, 38, 12, 45, 19], [18, 66, 52, 15, 49, 20]),
}
SIGNED = ([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0], [2, 5, 10, 22, 31, 36, 39], [40] * 7)
LAPSE = 0.02
BAYESFIT_LAPSE = 1.0 - (0.99 * (1.0 - LAPSE) + 0.005)


def sweetspot_logistic(data: tuple[Sequence[float], ...]) -> dict[str, float]:
    """Posterior of a logistic function of the logarithm: flat threshold, normal prior of the log slope."""
    import SweetSpot

    levels, correct, total = map(np.asarray, data)
    function = SweetSpot.PsychometricFunction(gamma=0.5, lambda_=LAPSE, shape=SweetSpot.Logistic)
    span = np.log(levels[-1] / levels[0])
    median = np.log(0.25 * 2.0 * np.log(19.0) / 2.6)  # of the slope at the threshold, for a width of 2.6
    function.Grid(
        alpha=(np.log(levels[0]) - 0.5 * span, np.log(levels[-1]) + 0.5 * span, 301),
        beta=(median - 2.6 * 0.6, median + 2.6 * 0.6, 151),
    )
    function.SetPrior(beta=(float(median), 0.6))
    for level, right, count in zip(levels, correct, total, strict=True):
        function.Observe(x=float(np.log(level)), r=float(right), n=float(count))
    mass = function.Posterior().squeeze()
    alphas, betas = (np.squeeze(function.FindParameter(name)[1]) for name in ("alpha", "beta"))
    cumulative = np.cumsum(mass.sum(axis=1)) - 0.5 * mass.sum(axis=1)
    low, middle, high = np.exp(np.interp([0.025, 0.5, 0.975], cumulative, alphas))
    slope = np.cumsum(mass.sum(axis=0)) - 0.5 * mass.sum(axis=0)
    return {
        "low": float(low),
        "threshold": float(middle),
        "high": float(high),
        "slope": float(np.exp(np.interp(0.5, slope, betas))),
        "mean": float(np.exp(np.sum(mass.sum(axis=1) * alphas))),
    }


def psychofit_weibull(data: tuple[Sequence[float], ...]) -> dict[str, float]:
    """Most likely Weibull function from 1/2 on, with lapses from 0 to 0.3."""
    import psychofit

    levels, correct, total = map(np.asarray, data)
    np.random.seed(1)
    table = np.vstack((levels, total, correct / total))
    found, _ = psychofit.mle_fit_psycho(
        table, "weibull50", np.array([0.2, 1.5, 0.02]), np.array([0.01, 0.2, 0.0]), np.array([1.0, 8.0, 0.3]), nfits=12
    )
    a, b, lapse = map(float, found)
    return {"threshold": a * np.log(2.0) ** (1.0 / b), "exponent": b, "lapse": lapse}


def psychofit_erf(data: tuple[Sequence[float], ...]) -> dict[str, float]:
    """Most likely cumulative normal function with equal lapses at both ends."""
    import psychofit

    levels, correct, total = map(np.asarray, data)
    np.random.seed(1)
    table = np.vstack((levels, total, correct / total))
    found, _ = psychofit.mle_fit_psycho(
        table,
        "erf_psycho",
        np.array([0.0, 2.0, 0.02]),
        np.array([-3.0, 0.1, 0.0]),
        np.array([3.0, 20.0, 0.3]),
        nfits=12,
    )
    point, slope, lapse = map(float, found)
    return {"threshold": point, "deviation": slope / np.sqrt(2.0), "lapse": lapse}


def bayesfit_logistic(data: tuple[Sequence[float], ...]) -> dict[str, float]:
    """Likelihood of a logistic function of the level on BayesFit's grid: its best cell and its mean.

    BayesFit presses P into 0.005 ... 0.995, so that a lapse rate of 0.02 there is one of 0.0248.
    """
    from bayesfit.genGrid import gen_grid
    from bayesfit.gridLikelihood import grid_likelihood

    table = np.column_stack(data).astype(float)
    slope = 4.0 * scipy_fit(data, "logistic", "linear", fixed_lapse=BAYESFIT_LAPSE)["slope"]
    options: dict[str, Any] = {"sigmoid_type": "logistic", "density": 300, "param_free": [True, True, False, False]}
    options["param_ests"] = [0.2, slope, np.array([0.5]), np.array([LAPSE])]
    grid = gen_grid(table, options)
    logs = grid_likelihood(table, options, grid)
    surface = np.exp(logs - logs.max())
    best = int(np.argmax(surface))
    return {
        "map": float(grid["A"].ravel()[best]),
        "slope": float(grid["B"].ravel()[best] / 4.0),
        "mean": float(np.sum(surface * grid["A"]) / surface.sum()),
    }


CORES = {
    "phi": stats.norm.cdf,
    "logistic": special.expit,
    "gumbel": lambda t: -np.expm1(-np.exp(np.minimum(t, 50.0))),
    "dprime": lambda t: 2.0 * stats.norm.cdf(np.exp(np.minimum(t, 50.0))) - 1.0,
}
HALF = {"phi": 0.0, "logistic": 0.0, "gumbel": np.log(np.log(2.0)), "dprime": np.log(stats.norm.ppf(0.75))}
STEEP = {
    "phi": stats.norm.pdf(0.0),
    "logistic": 0.25,
    "gumbel": 0.5 * np.log(2.0),
    "dprime": 2.0 * stats.norm.ppf(0.75) * stats.norm.pdf(stats.norm.ppf(0.75)),
}


def scipy_fit(
    data: tuple[Sequence[float], ...],
    core: str,
    scale: str,
    fixed_lapse: float | None = None,
    guess: float | None = 0.5,
) -> dict[str, float]:
    """Most likely function by Nelder and Mead, from several starts; guess None: as large as the lapses."""
    levels, correct, total = (np.asarray(column, dtype=float) for column in data)
    u = np.log(levels) if scale == "log" else levels

    def cost(x: np.ndarray) -> float:
        lapse = fixed_lapse if fixed_lapse is not None else 0.3 * special.expit(x[2])
        low = lapse if guess is None else guess
        p = np.clip(low + (1.0 - low - lapse) * CORES[core](np.exp(x[1]) * (u - x[0]) + HALF[core]), 1e-12, 1 - 1e-12)
        return -float(np.sum(correct * np.log(p) + (total - correct) * np.log1p(-p)))

    starts = [(m, k, x) for m in np.quantile(u, [0.3, 0.5, 0.7]) for k in (0.0, 1.0, 3.0) for x in (-4.0, -1.0)]
    options = {"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-11}
    best = min((optimize.minimize(cost, s, method="Nelder-Mead", options=options) for s in starts), key=lambda r: r.fun)
    m, k, x = best.x
    return {
        "threshold": float(np.exp(m) if scale == "log" else m),
        "slope": float(np.exp(k) * STEEP[core]),
        "lapse": fixed_lapse if fixed_lapse is not None else float(0.3 * special.expit(x)),
        "cost": float(best.fun),
    }


def _table() -> dict[str, Any]:
    return {
        "sources": {
            "sweetspot": "SweetSpot 1.15.1 (CC0-1.0), PsychometricFunction, Logistic, alpha 301 x beta 151",
            "psychofit": "Psychofit 1.0.0 (MIT), mle_fit_psycho, weibull50 and erf_psycho",
            "bayesfit": "BayesFit 2.4 (Apache-2.0), gen_grid and grid_likelihood, logistic, density 300",
        },
        "sweetspot": {name: sweetspot_logistic(data) for name, data in DATA.items()},
        "psychofit": {name: psychofit_weibull(data) for name, data in DATA.items()},
        "psychofit_erf": psychofit_erf(SIGNED),
        "bayesfit": {name: bayesfit_logistic(data) for name, data in DATA.items()},
    }


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(_table(), indent=1) + "\n", encoding="utf-8")
