"""Classify gestures that contain foreign passages: 1-NN under DTW and under Drop-DTW, on GunPoint.

In GunPoint, a person draws a gun or only points a finger. There are 50 training series and 150 test series of 150 time
steps each. We splice passages of another data set (ArrowHead, outlines of projectile points) into the test series at
random places; the training series stay clean. Cross-validation on the clean training series chooses the drop cost:
the lowest one with the best accuracy. The choice therefore uses no knowledge of the passages.

Both data sets are part of aeon's wheel: `pip install aeon 'dropdtw[sklearn,plot]'`, then
`python examples/classify.py [--plot curve.png]`. Nothing is downloaded.
"""

import argparse

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from dropdtw.sklearn import AlignmentKNeighborsClassifier, as_series

DROP_COSTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def splice(series: np.ndarray, passages: list[np.ndarray], share: float, rng: np.random.Generator) -> np.ndarray:
    """Insert two foreign passages into a series; they make up `share` of the result."""
    foreign = round(len(series) * share / (1 - share))
    first = int(rng.integers(foreign + 1))
    parts, last = [], 0
    for cut, length in zip(np.sort(rng.integers(len(series) + 1, size=2)), (first, foreign - first), strict=True):
        source = passages[rng.integers(len(passages))]
        start = int(rng.integers(len(source) - length + 1))
        parts += [series[last:cut], source[start : start + length]]
        last = cut
    return np.concatenate([*parts, series[last:]])


def least_of_the_best(results: dict[str, np.ndarray]) -> int:
    """The index of the lowest drop cost with the best accuracy, which drops the most."""
    best = results["mean_test_score"] >= results["mean_test_score"].max() - 1e-9
    costs = np.asarray(results["param_drop_x"], float)
    return int(np.where(best, costs, np.inf).argmin())


def learn(series: list[np.ndarray], labels: np.ndarray) -> dict[str, AlignmentKNeighborsClassifier]:
    """Fit both classifiers; the drop cost is chosen on the training series alone."""
    search = GridSearchCV(
        AlignmentKNeighborsClassifier(n_jobs=-1),
        {"drop_x": DROP_COSTS},
        cv=StratifiedKFold(10, shuffle=True, random_state=0),
        refit=least_of_the_best,
    ).fit(series, labels)
    print("cross-validation accuracy on the training series, by drop cost:")
    for cost, score in zip(DROP_COSTS, search.cv_results_["mean_test_score"], strict=True):
        print(f"  {cost:<5} {score:6.1%}{'  chosen' if cost == search.best_params_['drop_x'] else ''}")
    return {"DTW": AlignmentKNeighborsClassifier(n_jobs=-1).fit(series, labels), "Drop-DTW": search.best_estimator_}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="number of random draws of the passages (default: 5)")
    parser.add_argument("--plot", metavar="FILE", help="save a plot of the curves to this file")
    options = parser.parse_args()
    try:
        from aeon.datasets import load_arrow_head, load_gunpoint
    except ImportError:
        raise SystemExit("this example needs the data sets in aeon: pip install aeon") from None

    (train, labels), (test, truth) = load_gunpoint(split="train"), load_gunpoint(split="test")
    train, test, arrowheads = (as_series(X, layout="nct") for X in (train, test, load_arrow_head(split="test")[0]))
    classifiers = learn(train, labels)

    accuracy = {name: np.empty((options.runs, len(SHARES))) for name in classifiers}
    for run in range(options.runs):
        for column, share in enumerate(SHARES):
            rng = np.random.default_rng((run, column))
            spliced = [splice(series, arrowheads, share, rng) for series in test]
            for name, classifier in classifiers.items():
                accuracy[name][run, column] = classifier.score(spliced, truth)

    print(f"\naccuracy on {len(test)} test series, mean of {options.runs} runs:")
    print(f"  {'foreign':<10}" + "".join(f"{share:8.0%}" for share in SHARES))
    for name, values in accuracy.items():
        print(f"  {name:<10}" + "".join(f"{value:8.1%}" for value in values.mean(axis=0)))
    if options.plot:
        from dropdtw import plot

        axes = plot.curves(
            [100 * share for share in SHARES],
            {name: 100 * values for name, values in accuracy.items()},
            emphasis=["Drop-DTW"],
            xlabel="foreign share of a test series, %",
            ylabel="1-NN accuracy, %",
            title="GunPoint with passages from ArrowHead",
        )
        axes.figure.savefig(options.plot, dpi=150)
        print(f"\nsaved {options.plot}")


if __name__ == "__main__":
    main()
