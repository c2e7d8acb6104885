"""Section 5.2 with default settings, no θ told: Bayes estimates beside BRL, fabl and vabl.

The published results are per data set, so each cell is compared on the same files.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import bayeslink as bl
from tests.data import needs_study, reference_scores, study_fields, study_files

pytestmark = needs_study

CELLS = [(errors, overlap) for overlap in (50, 250, 450) for errors in (1, 2, 3)]


def scores(setting):
    """Recall, precision, and whether the 95 % interval of L covers the truth."""
    errors, overlap, dataset, draws, tune = setting
    a, b, truth = study_files(errors, overlap, dataset)
    fields = study_fields()
    run = bl.link(a, b, fields, missing=["NA"], draws=draws, tune=tune, threads=1)
    result = bl.evaluate(run.links, truth)
    low, high = run.posterior.interval()
    return result.recall, result.precision, low <= overlap <= high


def study(datasets, draws, tune):
    """Mean recall and precision by cell: ours, and each of the others."""
    settings = [(*cell, dataset, draws, tune) for cell in CELLS for dataset in datasets]
    with ProcessPoolExecutor(2) as pool:
        ours = np.reshape(list(pool.map(scores, settings, chunksize=4)), (9, len(datasets), 3))
    others = {
        method: np.array([reference_scores(*cell)[method][datasets].mean(axis=0) for cell in CELLS])
        for method in ("BRL", "fabl", "vabl")
    }
    return ours.mean(axis=1), others


def f1(cells):
    return 2 * cells[:, 0] * cells[:, 1] / (cells[:, 0] + cells[:, 1])


def test_a_few_data_sets_of_each_cell():
    ours, others = study([0, 1, 2, 3], draws=200, tune=100)
    assert f1(ours).mean() > max(f1(cells).mean() for cells in others.values()) + 0.005


@pytest.mark.verify
def test_all_900_settings(capsys):
    ours, others = study(list(range(100)), draws=1000, tune=500)
    best_recall, best_precision = (
        np.max([cells[:, k] for cells in others.values()], axis=0) for k in (0, 1)
    )
    with capsys.disabled():
        rows = np.column_stack([CELLS, ours, best_recall, best_precision]).round(4)
        print("", *rows.tolist(), f1(ours).mean(), *map(f1, others.values()), sep="\n")  # noqa: T201
    assert f1(ours).mean() >= 0.974
    assert (ours[:, 0] > best_recall - 0.003).all()
    assert (ours[:, 1] > best_precision - 0.005).all()
    assert (ours[:, 2] >= 0.85).all()  # the 95 % interval of L
    assert ours[:, 2].mean() >= 0.9
