"""Population size from two lists, with the uncertainty about the links carried on.

Each posterior draw of the links gives its own answer, and the answers are put together.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bayeslink.errors import InputError, SettingsError, check_interval
from bayeslink.pairs.source import Floats, Ints

_PRIORS = {"1/N": 1, "flat": 2}  # Fewest links for which the posterior of N is proper.
_MOST = 2.0**62


@dataclass(frozen=True, slots=True)
class PopulationSize:
    """Posterior of the number of people, in either list or in none.

    Attributes
    ----------
    draws
        One population size for each draw of the number of links, in the same shape.
    median, mean
        Of the draws. The mean is None where the posterior has none: with a draw of one link
        only (of up to two under the flat prior) its tail is too long.
    low, high
        Bounds of the central interval.
    lincoln_petersen, chapman
        Smallest and largest of these point estimates over the draws.
    identified
        Whether the number of links is known well enough for an interval. If not, `low` and `high`
        are bounds: of the most links that there can be, and of those that can be pointed to.
    """

    draws: Ints
    median: float
    mean: float | None
    low: float
    high: float
    lincoln_petersen: tuple[float, float]
    chapman: tuple[float, float]
    identified: bool = True


def population_size(
    n_a: int,
    n_b: int,
    n_links_draws: ArrayLike,
    *,
    prior: Literal["1/N", "flat"] = "1/N",
    interval: float = 0.95,
    seed: int = 0,
) -> PopulationSize:
    """Posterior of the population size N from two lists, given draws of the number of links L.

    Each list is a simple random catch from the N people, independently of the other, so
    L | N ~ Hypergeometric(N, n_a, n_b) for N ≥ n_a + n_b − L. For each draw of L one N is drawn
    from p(N | L), exactly; together they are draws of N with L averaged over.

    Parameters
    ----------
    n_a, n_b
        Records in A and in B.
    n_links_draws
        Draws of the number of links, of any shape.
    prior
        p(N) ∝ 1/N, which needs a link in every draw to give a proper posterior, or flat, which
        needs two.
    interval
        Probability of the central interval.
    seed
        The same seed gives the same draws.

    Returns
    -------
    PopulationSize

    Notes
    -----
    With k = N − (n_a + n_b − L) people in neither list, the likelihood times 1/(N + 1) is
    proportional to (n_a−L+1)_k (n_b−L+1)_k / (k! (n_a+n_b−L+2)_k), a beta-negative-binomial
    (generalized Waring) distribution. It is that of k ~ Poisson(x y / z) with x, y and z
    Gamma of shapes n_a−L+1, n_b−L+1 and L: the Lincoln–Petersen rule "only A × only B / both"
    with chance in it. The step from 1/(N + 1) to 1/N is a rejection that keeps nearly all; under
    the flat prior the last shape is L − 1 and nothing is rejected. There is no cut-off, except
    that rates x y / z above 2^62 are taken as that; with one link the chance is about
    n_a n_b / 2^62, with more it is nil.
    """
    links = _checked_links(n_a, n_b, n_links_draws, prior)
    check_interval(interval)
    draws = _draw_sizes(n_a, n_b, links.ravel(), prior, np.random.default_rng(seed))
    tail = (1 - interval) / 2
    low, median, high = np.quantile(draws, [tail, 0.5, 1 - tail]).tolist()
    return PopulationSize(
        draws=draws.reshape(links.shape),
        median=median,
        mean=float(draws.mean()) if links.min() > _PRIORS[prior] else None,
        low=low,
        high=high,
        lincoln_petersen=_range(lincoln_petersen(n_a, n_b, links)),
        chapman=_range(chapman(n_a, n_b, links)),
    )


def lincoln_petersen(n_a: int, n_b: int, n_links: ArrayLike) -> Floats:
    """Population size n_A n_B / L, the maximum of the likelihood; infinite without links."""
    links = np.asarray(n_links, np.float64)
    return np.divide(float(n_a) * n_b, links, out=np.full(links.shape, np.inf), where=links > 0)


def chapman(n_a: int, n_b: int, n_links: ArrayLike) -> Floats:
    """Population size (n_A + 1)(n_B + 1) / (L + 1) − 1, nearly unbiased."""
    return np.asarray((n_a + 1.0) * (n_b + 1) / (np.asarray(n_links, np.float64) + 1) - 1)


def _draw_sizes(n_a: int, n_b: int, links: Ints, prior: str, rng: np.random.Generator) -> Ints:
    """Draw N given each L; see the notes of `population_size`."""
    seen = n_a + n_b - links
    sizes = np.empty_like(links)
    todo = np.arange(len(links))
    while len(todo):
        L, u = links[todo], seen[todo]
        only_a, only_b = rng.standard_gamma(n_a - L + 1), rng.standard_gamma(n_b - L + 1)
        both = rng.standard_gamma(L if prior == "1/N" else L - 1)
        cells = only_a * only_b
        sizes[todo] = N = u + rng.poisson(cells / np.maximum(both, cells / _MOST))
        if prior == "flat":
            break
        # (1/N) / (1/(N + 1)) is largest at N = u: keep in proportion to that.
        todo = todo[rng.random(len(todo)) * (1 + 1 / u) > 1 + 1 / N]
    return sizes


def _checked_links(n_a: int, n_b: int, draws: ArrayLike, prior: str) -> Ints:
    if prior not in _PRIORS:
        raise SettingsError(
            f"prior must be one of {', '.join(map(repr, _PRIORS))}, got {prior!r}. "
            "Leave it out for 1/N."
        )
    links = np.asarray(draws)
    most = min(n_a, n_b)
    if not links.size or not np.all((links >= 0) & (links <= most) & (links == np.floor(links))):
        raise InputError(
            f"n_links_draws must be whole numbers from 0 to {most}, at least one. They are draws "
            f"of the number of links between {n_a} and {n_b} records; check which is which."
        )
    if few := int(np.sum(links < _PRIORS[prior])):
        other = "use the prior '1/N', or " if links.min() > 0 else ""
        raise InputError(
            f"{few} of {links.size} draws have fewer links than the {_PRIORS[prior]} needed for a "
            f"proper posterior of the population size under the prior {prior!r}. With so few the "
            f"lists allow any size, however large; {other}compare lists that overlap more."
        )
    return links.astype(np.int64)


def _range(x: Floats) -> tuple[float, float]:
    return float(x.min()), float(x.max())
