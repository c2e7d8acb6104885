"""A finished linkage, and what can be asked of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bayeslink.errors import BayeslinkError, SettingsError
from bayeslink.linkage.decisions import Decision
from bayeslink.linkage.penalized import PenalizedFit
from bayeslink.linkage.posthoc import Blocks
from bayeslink.linkage.priors import as_data
from bayeslink.model.weights import Parameters
from bayeslink.notebook_html import Shown
from bayeslink.pairs.pair_tables import for_caller, pair_values
from bayeslink.pairs.source import Pairs, PairSource, Plan
from bayeslink.runs.any_run import AnyRun, made_with
from bayeslink.runs.brief import in_brief
from bayeslink.runs.expected import errors_to_expect, records_in_both
from bayeslink.runs.explanation import Explanation, explain_pair
from bayeslink.runs.link_toml import dump
from bayeslink.runs.outputs import drawn_rows, joined, linked_rows, unlinked
from bayeslink.runs.structure_data import structure_data
from bayeslink.runs.tables import table_of
from bayeslink.runs.theta_path import ThetaPath
from bayeslink.sampling.fit_checks import FitChecks
from bayeslink.sampling.posterior import Posterior
from bayeslink.settings import LinkSettings

if TYPE_CHECKING:
    from bayeslink.plots import RunPictures
    from bayeslink.runs.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class Run(AnyRun, Shown):
    """A finished linkage: the links and all that led to them."""

    pairs: PairSource = field(repr=False)
    fit: PenalizedFit
    blocks: Blocks | None = field(repr=False)  # None, as the next two, for a point estimate
    posterior: Posterior | None = field(repr=False)
    decision: Decision | None = field(repr=False)
    table: pa.Table = field(repr=False)  # the links and the pairs to review, as Arrow
    labels: pa.Table | None = field(repr=False)  # known links and non-links, if there are any
    plan: Plan | None = field(repr=False)  # of the search for the candidates
    settings: LinkSettings = field(repr=False)
    seconds: Mapping[str, float]
    checks: FitChecks = field(repr=False)  # whether the model fits these files
    warnings: tuple[str, ...]
    sources: tuple[Any, Any] | None = field(default=None, repr=False)  # A and B, as given
    directory: Path | None = None  # from which the run was opened

    def __repr__(self) -> str:
        return "\n".join(in_brief(self))

    @property
    def links(self) -> Any:
        """Links, and pairs to review, in the caller's own kind of table."""
        return for_caller(self.pairs, self.table)

    @property
    def parameters(self) -> Parameters:
        """m and u: posterior means, or the fit's where there are no draws."""
        return self.fit.parameters if self.posterior is None else self.posterior.parameters

    @property
    def n_links(self) -> int:
        """Links of the estimate, pairs to review left out."""
        return int(pc.sum(pc.equal(self.table["decision"], "link")).as_py() or 0)

    @property
    def theta(self) -> float:
        """What one more link costs at the number of links found."""
        if self.posterior is None:
            return self.fit.theta
        return self.posterior.theta

    def candidates(self) -> pa.Table:
        """Every candidate pair, as pairs.parquet has it; the links, for a point estimate."""
        pairs = self.as_table("pairs")
        if pairs is None:
            return self.table.drop_columns(["link_probability", "decision"])
        return pairs

    def as_table(self, name: str) -> Any:
        """A table as the run directory has it, such as "draws"; None where the run has none."""
        return table_of(self, name)

    @cached_property
    def theta_path(self) -> ThetaPath | None:
        """Links of the penalized-likelihood estimate around theta; None with too many pairs."""
        return ThetaPath.if_few(self.pairs, self.theta)

    @property
    def link_toml(self) -> str:
        """The settings, as link.toml has them."""
        return dump(self.settings)

    def joined(self, how: str = "inner") -> Any:
        """The linked file: A's columns, B's with _b where names clash, and the link probability.

        Parameters
        ----------
        how
            "inner": one row for each link; "left": for each record of A, linked or not; "right":
            for each of B; "outer": for each record of either.
        """
        return joined(self, linked_rows(self), how)

    def unlinked(self, side: str) -> Any:
        """The records of "a" or of "b" without a link, as they came; those to review are there."""
        if side not in ("a", "b"):
            raise SettingsError(f'side must be "a" or "b", got {side!r}.')
        return unlinked(self, "ab".index(side))

    def joined_draws(self, k: int = 20, how: str = "inner") -> Iterator[Any]:
        """k versions of the linked file, each with the links of one draw, one after the other.

        Analyse each as if it were the truth and combine the results with `pool`.
        """
        for rows in drawn_rows(self, k):
            yield joined(self, rows, how)

    def save(
        self,
        directory: Any,
        *,
        force: bool = False,
        shared: bool = False,
        linked: bool | str = True,
        keep_inputs: bool = False,
    ) -> None:
        """Write the run directory; see `docs/reference/run-directory.md` for its files.

        Parameters
        ----------
        force
            Replace a run directory that is there.
        shared
            Let the group read it; else its owner alone may.
        linked
            Write the linked file and the records without a link, too: these hold all columns of
            both inputs. With Spark, the place where its executors write them, such as "s3://…".
        keep_inputs
            Keep the inputs in the directory, so that the run can be repeated from it alone.
        """
        from bayeslink.runs.saving import save_run

        save_run(
            self, directory, force=force, shared=shared, linked=linked, keep_inputs=keep_inputs
        )

    def report(
        self,
        path: Any = None,
        *,
        truth: Any = None,
        disclosure: int | None = None,
        values: bool = True,
    ) -> Path:
        """Write the run as one HTML file, and return its path.

        Parameters
        ----------
        path
            The file to write; of a run that was opened, report.html in its directory unless given.
        truth
            Known true pairs, a file or a table with id_a and id_b: adds how well it went and
            whether the probabilities are calibrated.
        disclosure
            Counts are rounded to the nearest of its multiples, those below it shown as "< k", and
            nothing else is told from which one could be worked out.
        values
            Whether the examples show the records' values and ids.
        """
        page: Any = import_module("bayeslink.report.page")  # of a room above
        written: Path = page.report(self, path, truth=truth, disclosure=disclosure, values=values)
        return written

    @property
    def plots(self) -> RunPictures:
        """The pictures of this run: `run.plots.links()` is `bl.plots.links(run)`."""
        pictures: RunPictures = import_module("bayeslink.plots").RunPictures(self)
        return pictures

    def evaluate(self, truth: Any) -> Evaluation:
        """Compare the links with the true pairs, as `bl.evaluate(run, truth)` does."""
        found: Evaluation = import_module("bayeslink.runs.evaluation").evaluate_links(self, truth)
        return found

    def explain(self, id_a: str, id_b: str) -> Explanation:
        """Why a pair is linked or not: weight by field, rivals on either side, probabilities."""
        found = self.pairs.find([(id_a, id_b)])
        names = [f.name for f in self.pairs.fields]
        return explain_pair(
            self.candidates(),
            self.table,
            self.as_table("parameters"),
            str(id_a),
            str(id_b),
            levels=dict(zip(names, found.levels[0].tolist(), strict=True)),
            needed=self.theta / math.log(2),
            w0=self._restricted_to(),
            weigh=lambda: float(self.parameters.weight_of(found.levels)[0]) / math.log(2),
            values=self._values(found),
        )

    def _values(self, found: Pairs) -> dict[str, tuple[str, str]] | None:
        """What the records of a pair hold; None where a run was opened without its inputs."""
        try:
            return pair_values(self.pairs, found)[0]
        except BayeslinkError:
            if self.directory is None:
                raise
            return None

    def _restricted_to(self) -> float | None:
        """w0 in bits, if only pairs above it could link."""
        restricted = self.blocks is not None and self.settings.restricted
        return self.blocks.w0 / math.log(2) if self.blocks and restricted else None

    def summary(self) -> dict[str, Any]:
        """The run in a few numbers, as `run.json` and `--json` have them."""
        pairs, fit = self.pairs, self.fit
        return {
            "n_a": pairs.n_a,
            "n_b": pairs.n_b,
            "n_pairs": pairs.n_pairs,
            "n_links": self.n_links,
            "theta": self.theta,
            "prior": as_data(fit.prior),
            "structure": structure_data(fit.structure, self.parameters, pairs.fields),
            "fit": self.checks.as_data(),
            "search": None if self.plan is None else self.plan.summary(),
            **self._posterior_summary(),
            "point_estimate": {
                "n_links": fit.n_links,
                "objective": fit.objective,
                "tied_links": int(fit.tied.sum()),
                "rivals": len(fit.rivals),
                "rivals_expected": fit.rivals.expected,
                "modes": [{"n_links": m.n_links, "objective": m.objective} for m in fit.modes],
            },
            "seconds": dict(self.seconds),
            "memory": dict(pairs.describe().memory),
            "warnings": list(self.warnings),
        }

    def provenance(self) -> dict[str, Any]:
        """Software, inputs and results: what it takes to repeat and to check the run."""
        post, path = self.posterior, self.theta_path
        return {
            **self.summary(),
            **({"kept_every": post.kept_every} if post else {}),
            "diagnostics": [asdict(d) for d in post.diagnostics()] if post else [],
            "path": path and path.as_data(),
            **made_with(self.pairs),
            "left_out": [asdict(column) for column in self.settings.left_out],
        }

    def report_lines(self) -> list[str]:
        """The run in a few sentences, in the terms of the method."""
        s = self.summary()
        seconds = sum(self.seconds.values())
        lines = [
            f"{s['n_a']:,} records in A, {s['n_b']:,} in B, {s['n_pairs']:,} pairs in scope: "
            f"{s['n_links']:,} links ({seconds:.1f} s)."
        ]
        if "chains" not in s:
            return [*lines, f"Point estimate at theta = {self.theta:.4g}: no probabilities."]
        others = "" if s["restricted"] or s["w0"] is None else ", all others by births and deaths"
        many = f"{s['blocks']:,} blocks, the largest of {s['largest_block']:,}"
        blocks = "one block" if s["blocks"] == 1 else many
        lines += [
            f"{records_in_both(s)} {errors_to_expect(s)}",
            f"Sampled: {s['candidates']:,} pairs in {blocks}{others}; {s['chains']} chains of "
            f"{s['draws']:,} draws.",
        ]
        if s["restricted"]:
            above = "−∞" if s["w0"] is None else f"{s['w0']:.2f}"
            lines.append(
                f"Restricted to pairs above w0 = {above}: about {s['links_outside']:,.1f} links "
                "are expected among the others."
            )
        if not s["fit"]["fits"]:
            lines.append("The model does not fit these files in all respects: see the warnings.")
        if s["review_records"]:
            lines.append(f"Left to review: {s['review_records']:,} records of B.")
        return lines

    def _expected_false(self) -> float:
        """Links expected to be false; all that are no more than chance, if most are not."""
        assert self.decision is not None
        expected = self.decision.expected_false
        if self.posterior is None:
            return expected
        parts, within = self.posterior.identified.parts, self.posterior.within
        expected += parts.likely_false - parts.false  # more, by the look-alikes
        if within is not None and not within.holds:
            expected = max(expected, (1 - within.supported) * len(self.decision.links))
        return min(expected, float(len(self.decision.links)))

    def _posterior_summary(self) -> dict[str, Any]:
        if self.posterior is None or self.blocks is None or self.decision is None:
            return {}
        post, blocks, sizes = self.posterior, self.blocks, self.blocks.n_pairs_in_block
        found = post.identified
        return {
            "links_mean": float(post.n_links.mean()),
            "links_interval": list(found.interval(0.95)),
            "links_pointed": found.parts.pointed,
            "links_counted": found.parts.counted,
            "links_identified": found.holds,
            "links_by_chance": found.parts.by_chance,
            "expected_false_links": self._expected_false(),
            "review_records": len(self.decision.rejected),
            "restricted": post.restricted,
            "w0": blocks.w0 if math.isfinite(blocks.w0) else None,  # JSON has no −∞
            "w0_why": blocks.why,
            "links_outside": blocks.set_aside() if post.restricted else post.rest,
            "candidates": blocks.n_candidates,
            "listed": blocks.n_candidates + len(blocks.low),
            "links_elsewhere": float(post.probability[blocks.n_candidates :].sum()) + post.rest,
            "known_links": len(blocks.known),
            "blocks": blocks.n_blocks,
            "largest_block": int(sizes.max(initial=0)),
            "blocks_drawn": dict(post.kinds),
            "chains": len(post.n_links),
            "draws": post.n_links.shape[1],
            "tune": post.tune,
        }
