"""The paper's data, where they are at hand: `BAYESLINK_DATA`, or shared/data beside the clone."""

from __future__ import annotations

import pytest

from experiments.data import (  # noqa: F401 - for the tests
    CENSUS,
    REFERENCES,
    ROOT,
    STUDY,
    STUDY_FIELDS,
    census_fields,
    large_example,
    paper_fields,
    reference_scores,
    study_fields,
    study_files,
    study_records,
)

needs_census = pytest.mark.skipif(
    not CENSUS.is_dir(), reason="no italian_census: set BAYESLINK_DATA to the folder that holds it"
)
needs_study = pytest.mark.skipif(
    not STUDY.is_file(), reason="no sadinle2017: set BAYESLINK_DATA to the folder that holds it"
)
