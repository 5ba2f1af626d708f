"""Cox fits of public registries and their resamples: the gradient at the reported maximum, beside two other programs.

    python benchmarks/cox.py --data DIR [--resamples 8] [--sets flchain,gbsg] [--further SITE-PACKAGES]

For the registry and each resample: the largest component of Efron's gradient (of standardized columns) at the
coefficients that the product, lifelines and statsmodels report, computed by statsmodels' score; and the largest gap
between the product's coefficients and lifelines', and those of statsmodels started at the product's, in standard
errors. `--further` names the packages of an environment that has scikit-survival (GPL, so no dependency): its gradient
and its coefficients' gap to the product's are added.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import commit, machine, table
from leeward.analysis.plan import Design, design_of, models_of
from leeward.analysis.regression import fit
from leeward.cohort.readers import read
from registries import FURTHER_OUTCOMES, load, resample

SETS = ("flchain", "gbsg", "mgus2", "rotterdam", "support2", "nafld1")


def designs(name: str, data: Path, resamples: int) -> list[Design]:
    registry = load(data, name)
    columns = read(registry.frame, format="table").table().columns
    (model,) = models_of(registry.plan(FURTHER_OUTCOMES))
    frames = [registry.frame, *(resample(registry.frame, seed) for seed in range(1, resamples + 1))]
    return [design_of(model, frame, columns) for frame in frames]


def gradient(other: Any, at: Any) -> float:
    return float(np.abs(other.score(at)).max()) if np.isfinite(at).all() else float("nan")


def lifelines_of(design: Design, kept: Any) -> Any:
    import pandas as pd
    from lifelines import CoxPHFitter

    names = [f"x{number}" for number in range(int(kept.sum()))]
    frame = pd.DataFrame(design.matrix[:, kept], columns=names).assign(t=design.outcome, e=design.event)
    try:
        found = CoxPHFitter().fit(frame, "t", "e")
    except Exception:  # lifelines' own kinds of error: what it reports is nothing
        return np.full(len(names), np.nan)
    return found.params_.to_numpy()


def further_of(matrix: Any, design: Design) -> Any:
    """scikit-survival's coefficients of standardized columns; NaN where it is not there or fails."""
    try:
        from sksurv.linear_model import CoxPHSurvivalAnalysis
        from sksurv.util import Surv

        survival = Surv.from_arrays(design.event.astype(bool), design.outcome.astype(float))
        model = CoxPHSurvivalAnalysis(ties="efron", tol=1e-12, n_iter=200)
        return model.fit(matrix, survival).coef_
    except (ImportError, ArithmeticError, ValueError):
        return np.full(matrix.shape[1], np.nan)


def measured(design: Design) -> tuple[list[float], list[float]]:
    """Gradients of product, lifelines, statsmodels, scikit-survival; gaps of the product to lifelines and statsmodels
    in standard errors, and to scikit-survival in coefficients of standardized columns."""
    from statsmodels.duration.hazard_regression import PHReg

    found = fit("cox", design)
    kept = ~np.isnan(found.coefficients)
    if not found.converged:
        return [float("nan")] * 4, [float("nan")] * 3
    matrix = design.matrix[:, kept]
    spread = matrix.std(axis=0)
    other = PHReg(design.outcome, (matrix - matrix.mean(axis=0)) / spread, status=design.event, ties="efron")
    own = found.coefficients[kept] * spread
    try:
        theirs = np.asarray(other.fit().params)
    except np.linalg.LinAlgError:
        theirs = np.full(len(own), np.nan)
    near = np.asarray(other.fit(start_params=own).params)
    lines = lifelines_of(design, kept) * spread
    errors = found.errors[kept] * spread
    third = further_of((matrix - matrix.mean(axis=0)) / spread, design)
    gaps = [float(np.abs((own - each) / errors).max()) for each in (lines, near)]
    return [gradient(other, each) for each in (own, lines, theirs, third)], [
        *gaps,
        float(np.abs(own - third).max()),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--resamples", type=int, default=8)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--further", type=Path)
    given = parser.parse_args()
    if given.further:
        sys.path.append(str(given.further))
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in given.sets.split(","):
            found = [measured(each) for each in designs(name, given.data, given.resamples)]
            ours, lines, models, third = (np.array([each[0][place] for each in found]) for place in range(4))
            gaps = np.array([each[1] for each in found])
            rows.append(
                [
                    name,
                    str(len(found)),
                    str(int(np.isnan(ours).sum())),
                    f"{np.nanmax(ours):.1e}",
                    *(
                        f"{np.nanmax(each):.1e} ({int((~(each < 1e-3)).sum())})"
                        for each in (lines, models, third)
                    ),
                    *(
                        f"{summary(gaps[:, place]):.1e}"
                        for place, summary in enumerate((np.nanmedian, np.nanmax, np.nanmax))
                    ),
                ]
            )
            print(*rows[-1], flush=True)
    print(f"\n{machine()}; commit {commit()}\n")
    heads = ["registry", "fits", "did not converge", "greatest gradient", "lifelines (above 1e-3)"]
    heads += ["statsmodels (above 1e-3)", "scikit-survival (above 1e-3)", "median gap to lifelines, se"]
    heads += ["to statsmodels started there, se", "to scikit-survival, coefficients"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
