"""The driver of chains: draws, threads, checkpoints, progress.

It knows neither the model of m and u nor who may link whom: a chain is whatever can make sweeps,
be written down and tell of its draws.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from bayeslink.checkpoints import Arrays, Checkpoints
from bayeslink.errors import SettingsError
from bayeslink.memory import machine_memory
from bayeslink.threads import run_all, slices

MOST_CHAINS = 1000
FASTEST = 1e-5  # seconds that a sweep takes at least
MOST_DAYS = 30

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Chain(Protocol[R_co]):
    """A linkage state with its model: one chain."""

    number: int
    done: int  # sweeps

    def advance(self, n: int, draw: int) -> None:
        """Sweeps, recorded from draw `draw` on unless that is negative."""

    def written(self) -> Arrays:
        """All that a checkpoint holds."""

    def restore(self, found: Arrays) -> None:
        """Go on from a checkpoint."""

    def result(self) -> R_co:
        """What there is to know of the draws, once all are made."""


def run_chains(
    chain: Callable[[int], Chain[R]],
    chains: int,
    tune: int,
    draws: int,
    threads: int,
    progress: Callable[[str], None],
    checkpoints: Checkpoints | None,
) -> list[R]:
    """The results of all chains, in order, whatever the number of threads."""
    steps = [0] * chains

    def run(number: int) -> R:
        def report(done: int) -> None:
            steps[number] = done
            progress(f"sampling: {sum(steps) / chains / (tune + draws):.0%}")

        return run_chain(chain(number), tune, draws, report, checkpoints)

    return run_all([partial(run, number) for number in range(chains)], threads)


def run_chain(
    chain: Chain[R],
    tune: int,
    draws: int,
    report: Callable[[int], None] = lambda done: None,
    checkpoints: Checkpoints | None = None,
) -> R:
    """Tune, then draw; go on from a checkpoint where there is one."""
    name = f"chain-{chain.number}"
    if checkpoints and (found := checkpoints.load(name)):
        chain.restore(found)
    began = since = time.monotonic()
    for end in (tune, tune + draws):
        for first, last in slices(end - chain.done):
            chain.advance(last - first, chain.done - tune if chain.done >= tune else -1)
            report(chain.done)
            if checkpoints is not None and checkpoints.due(since):
                checkpoints.save(name, chain.written())
                since = time.monotonic()
    if checkpoints is not None and checkpoints.due(began):
        checkpoints.save(name, chain.written())
    return chain.result()


def check_sampling(
    *,
    draws: int,
    tune: int,
    chains: int,
    seed: int,
    threads: int | None,
    levels: int = 0,
    budget: int | None = None,
) -> None:
    """Refuse settings of `sample` that make no sense, or that no machine has time or room for.

    `levels` are those of all fields together, m and u of which are kept for every draw.
    """
    least = {"draws": (draws, 1), "tune": (tune, 0), "chains": (chains, 1), "seed": (seed, 0)}
    if threads is not None:
        least["threads"] = (threads, 1)
    for name, (value, lowest) in least.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < lowest:
            raise SettingsError(f"{name} must be a whole number from {lowest} up, got {value!r}.")
    if seed >= 2**63:
        raise SettingsError(f"seed must be below 2**63, got {seed!r}.")
    if chains > MOST_CHAINS:
        raise SettingsError(f"chains must be at most {MOST_CHAINS:,}, got {chains:,}.")
    days = (draws + tune) * chains * FASTEST / 86400
    size = draws * chains * (2 * levels + 4) * 8 * 3  # draws, their summaries, their table
    room = max(2e9, machine_memory() if budget is None else budget)
    if days > MOST_DAYS or size > room / 2:
        raise SettingsError(
            f"{chains:,} chains of {draws:,} draws after {tune:,} would take at least "
            f"{size / 1e9:,.3g} GB and {days:,.2g} days. Ask for fewer: draws=1000 and tune=500 "
            "are usual (--draws, --tune)."
        )
