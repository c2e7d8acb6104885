"""Bayesian record linkage after McVeigh & Murray: who is the same person, and how sure are we?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module. Imported when first used, so that `bayeslink --help` is quick.
_PUBLIC = {
    "BayeslinkError": "errors",
    "InputError": "errors",
    "OutputError": "errors",
    "SettingsError": "errors",
    "Field": "comparing.fields",
    "custom": "comparing.fields",
    "damerau_levenshtein": "comparing.fields",
    "date": "comparing.fields",
    "exact": "comparing.fields",
    "geo": "comparing.fields",
    "jaro_winkler": "comparing.fields",
    "levenshtein": "comparing.fields",
    "numeric": "comparing.fields",
    "tokens": "comparing.fields",
    "address": "comparing.special_fields",
    "collection": "comparing.special_fields",
    "company": "comparing.special_fields",
    "email": "comparing.special_fields",
    "identifier": "comparing.special_fields",
    "name": "comparing.special_fields",
    "person_name": "comparing.special_fields",
    "phone": "comparing.special_fields",
    "postcode": "comparing.special_fields",
    "text": "comparing.special_fields",
    "ReadOptions": "data.read_options",
    "Overlap": "linkage.priors",
    "Penalty": "linkage.priors",
    "assign_em": "linkage.em",
    "fellegi_sunter": "linkage.em",
    "fit_em": "linkage.em",
    "fit_penalized": "linkage.penalized",
    "penalty_path": "linkage.penalized",
    "block_curve": "linkage.posthoc",
    "posthoc_blocks": "linkage.posthoc",
    "sample": "sampling.sampler",
    "sensitivity": "sampling.sensitivity",
    "Loss": "linkage.decisions",
    "chapman": "sampling.population",
    "lincoln_petersen": "sampling.population",
    "pool": "sampling.pooling",
    "list_counts": "sampling.many_lists",
    "population_from_lists": "sampling.many_lists",
    "population_size": "sampling.population",
    "draw_sample": "runs.audits",
    "plan_sample": "runs.audit_plan",
    "evaluate_sample": "runs.audits",
    "changes": "runs.changes",
    "coverage": "runs.analyses",
    "cross_table": "runs.analyses",
    "expected": "runs.analyses",
    "export_labels": "judging.labels",
    "read_labels": "judging.labels",
    "compare": "engines.compare",
    "from_fastlink": "exchange.compared_tables",
    "from_recordlinkage": "exchange.compared_tables",
    "from_splink": "exchange.splink_tables",
    "from_table": "exchange.compared_tables",
    "given_levels": "comparing.fields",
    "read_clusters": "exchange.clusters",
    "write_clusters": "exchange.clusters",
    "read_splink": "exchange.splink_settings",
    "splink_clusters": "exchange.splink_tables",
    "splink_labels": "exchange.splink_tables",
    "splink_predictions": "exchange.splink_tables",
    "link": "linking.link",
    "dedupe": "linking.dedupe",
    "link_many": "linking.many",
    "ClusterLoss": "linkage.clustering",
    "ClusterSizes": "linkage.partitions",
    "profile": "suggesting.profiling",
    "suggest": "suggesting.suggestion",
    "open_run": "runs.opening",
    "relink": "linking.updating",
    "update": "linking.updating",
    "evaluate": "runs.evaluation",
    "plots": "plots",
    "simulate": "simulation.files",
    "simulate_duplicates": "simulation.duplicates",
    "write_simulation": "simulation.files",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from bayeslink import plots
    from bayeslink.comparing.fields import (
        Field,
        custom,
        damerau_levenshtein,
        date,
        exact,
        geo,
        given_levels,
        jaro_winkler,
        levenshtein,
        numeric,
        tokens,
    )
    from bayeslink.comparing.special_fields import (
        address,
        collection,
        company,
        email,
        identifier,
        name,
        person_name,
        phone,
        postcode,
        text,
    )
    from bayeslink.data.read_options import ReadOptions
    from bayeslink.engines.compare import compare
    from bayeslink.errors import BayeslinkError, InputError, OutputError, SettingsError
    from bayeslink.exchange.clusters import read_clusters, write_clusters
    from bayeslink.exchange.compared_tables import from_fastlink, from_recordlinkage, from_table
    from bayeslink.exchange.splink_settings import read_splink
    from bayeslink.exchange.splink_tables import (
        from_splink,
        splink_clusters,
        splink_labels,
        splink_predictions,
    )
    from bayeslink.judging.labels import export_labels, read_labels
    from bayeslink.linkage.clustering import ClusterLoss
    from bayeslink.linkage.decisions import Loss
    from bayeslink.linkage.em import assign_em, fellegi_sunter, fit_em
    from bayeslink.linkage.partitions import ClusterSizes
    from bayeslink.linkage.penalized import fit_penalized, penalty_path
    from bayeslink.linkage.posthoc import block_curve, posthoc_blocks
    from bayeslink.linkage.priors import Overlap, Penalty
    from bayeslink.linking.dedupe import dedupe
    from bayeslink.linking.link import link
    from bayeslink.linking.many import link_many
    from bayeslink.linking.updating import relink, update
    from bayeslink.runs.analyses import coverage, cross_table, expected
    from bayeslink.runs.audit_plan import plan_sample
    from bayeslink.runs.audits import draw_sample, evaluate_sample
    from bayeslink.runs.changes import changes
    from bayeslink.runs.evaluation import evaluate
    from bayeslink.runs.opening import open_run
    from bayeslink.sampling.many_lists import list_counts, population_from_lists
    from bayeslink.sampling.pooling import pool
    from bayeslink.sampling.population import chapman, lincoln_petersen, population_size
    from bayeslink.sampling.sampler import sample
    from bayeslink.sampling.sensitivity import sensitivity
    from bayeslink.simulation.duplicates import simulate_duplicates
    from bayeslink.simulation.files import simulate, write_simulation
    from bayeslink.suggesting.profiling import profile
    from bayeslink.suggesting.suggestion import suggest


def __dir__() -> list[str]:
    """The public names, loaded or not: what completion offers."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'bayeslink' has no attribute {name!r}")
    module = importlib.import_module(f"bayeslink.{_PUBLIC[name]}")
    value = module if name == _PUBLIC[name] else getattr(module, name)
    globals()[name] = value
    return value
