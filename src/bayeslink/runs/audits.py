"""Random samples to judge, drawn and evaluated, of links and of people.

What is drawn is in `runs.audit_sample` and `runs.people_sample`, what follows in `runs.audit` and
`runs.people_audit`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bayeslink.errors import InputError
from bayeslink.judging.judgements import FILE, Judgements, Sample
from bayeslink.judging.labels import read_labels
from bayeslink.runs.audit import SampleEvaluation, evaluate_links
from bayeslink.runs.audit_sample import links_sample
from bayeslink.runs.dedupe_run import DedupeRun
from bayeslink.runs.opening import as_run, open_run, saved_in
from bayeslink.runs.people_audit import PeopleEvaluation, estimate_people
from bayeslink.runs.people_sample import PeopleToDraw, people_sample
from bayeslink.runs.run import Run


def draw_sample(run: Run | DedupeRun | str | Path, size: int = 200, *, seed: int = 1) -> Sample:
    """Draw pairs, or of people clusters, to judge, and store them in the run's directory.

    A sample drawn earlier is replaced; judgements are kept.

    Parameters
    ----------
    run
        The run directory, or the run that was opened from it.
    size
        Pairs, or clusters, to draw: half of them spread evenly over the strata, the others so that
        the estimates are as precise as they can be if the model's probabilities are about right.

    Returns
    -------
    Sample
        Of people, `pairs` are those that say who the records of the clusters drawn are: those of a
        cluster come one after another.
    """
    run = opened(run)
    folder = saved_in(run)
    if isinstance(run, DedupeRun):
        sample = people_sample(PeopleToDraw.of(run), size, seed)
    else:
        sample = links_sample(run, size, seed)
    with Judgements(folder / FILE) as judgements:
        judgements.set_sample(sample)
    return sample


def evaluate_sample(
    run: Run | DedupeRun | str | Path, labels: Any = None
) -> SampleEvaluation | PeopleEvaluation:
    """Estimate precision, recall and F1 of a run from its judged random sample.

    Of people, B-cubed precision and recall, the share of exact clusters and the number of people,
    too.

    Parameters
    ----------
    run
        The run directory, or the run that was opened from it.
    labels
        Where the verdicts are, if not in the run directory: see `read_labels`.

    Notes
    -----
    Pairs that are unsure are taken to be like the others of their stratum. Of a sample that is not
    judged to the end, a stratum counts up to the first one in its random order that is not judged:
    people judge the doubtful cases first, and those would bias the estimate.
    """
    run = opened(run)
    folder, sample = saved_in(run), None
    if (folder / FILE).exists():
        with Judgements(folder / FILE) as judgements:
            sample = judgements.sample()
    if sample is None:
        raise InputError(
            f"no random sample was drawn from {folder}. Draw one on its review page (bayeslink "
            f"review {folder}) or with draw_sample, judge its pairs, and come back."
        )
    if sample.run != run.fingerprint:
        raise InputError(
            f"the random sample in {folder} was drawn from an earlier run, with other links. "
            "Draw a new one."
        )
    verdicts = read_labels(folder if labels is None else labels)
    if isinstance(run, DedupeRun):
        return estimate_people(PeopleToDraw.of(run), sample, verdicts, run.entities.interval())
    return evaluate_links(run, sample, verdicts)


def opened(source: Run | DedupeRun | str | Path) -> Run | DedupeRun:
    """A run of either kind, given as it is or by its directory."""
    if isinstance(source, DedupeRun):
        return source
    return open_run(source) if isinstance(source, str | Path) else as_run(source)
