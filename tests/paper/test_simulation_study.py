"""Section 5.2 over ten databases a cell: penalized likelihood against EM + assignment."""

import numpy as np
import pytest

import bayeslink as bl
from tests.data import needs_study, paper_fields, study_fields, study_files

pytestmark = needs_study

THETA = {50: 7.0, 250: 5.0, 500: 0.0}
# errors, overlap -> least mean recall and precision of penalized likelihood with the paper's θ,
# some way below what it reaches, so that a real change shows and rounding does not.
LEAST = {
    (1, 50): (0.99, 0.86),
    (2, 50): (0.98, 0.83),
    (3, 50): (0.93, 0.71),
    (1, 250): (0.99, 0.97),
    (2, 250): (0.985, 0.96),
    (3, 250): (0.95, 0.94),
    (1, 500): (0.995, 0.995),
    (2, 500): (0.99, 0.99),
    (3, 500): (0.97, 0.99),
}


def scores(links, truth):
    result = bl.evaluate(links, truth)
    return result.recall, result.precision


@pytest.mark.parametrize(("errors", "overlap"), LEAST)
def test_recall_and_precision(errors, overlap):
    penalized, em = [], []
    for dataset in range(10):
        a, b, truth = study_files(errors, overlap, dataset)
        pairs = bl.compare(a, b, paper_fields(), missing=["NA"])
        penalized.append(scores(bl.fit_penalized(pairs, theta=THETA[overlap]).links, truth))
        em.append(scores(bl.assign_em(bl.fit_em(pairs), mu=THETA[overlap]).links, truth))
    recall, precision = np.mean(penalized, axis=0)
    assert recall >= LEAST[errors, overlap][0]
    assert precision >= LEAST[errors, overlap][1]
    # EM + assignment is no better in any cell with non-matching records, over both errors.
    if overlap < 500:
        assert recall + precision >= np.sum(np.mean(em, axis=0)) - 0.02


@pytest.mark.parametrize("errors", [1, 2, 3])
def test_without_theta_the_overlap_prior_finds_its_own(errors):
    for overlap in (50, 250, 500):
        found = []
        for dataset in range(3):
            a, b, truth = study_files(errors, overlap, dataset)
            run = bl.link(a, b, study_fields(), missing=["NA"], point=True)
            found.append(scores(run.links, truth))
        recall, precision = np.mean(found, axis=0)
        assert precision > (0.8 if overlap == 50 else 0.93)
        assert recall > (0.6 if (errors, overlap) == (3, 50) else 0.9)
