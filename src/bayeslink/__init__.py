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
    "Field": "fields",
    "custom": "fields",
    "damerau_levenshtein": "fields",
    "date": "fields",
    "exact": "fields",
    "geo": "fields",
    "jaro_winkler": "fields",
    "levenshtein": "fields",
    "numeric": "fields",
    "tokens": "fields",
    "ReadOptions": "records",
    "Overlap": "priors",
    "Penalty": "priors",
    "assign_em": "em",
    "fellegi_sunter": "em",
    "fit_em": "em",
    "fit_penalized": "penalized",
    "penalty_path": "penalized",
    "block_curve": "posthoc",
    "posthoc_blocks": "posthoc",
    "sample": "sampler",
    "sensitivity": "sensitivity_analysis",
    "Loss": "decisions",
    "chapman": "downstream",
    "lincoln_petersen": "downstream",
    "pool": "downstream",
    "population_size": "downstream",
    "draw_sample": "audit",
    "evaluate_sample": "audit",
    "changes": "differences",
    "export_labels": "labels",
    "read_labels": "labels",
    "compare": "linking",
    "link": "linking",
    "evaluate": "evaluation",
    "plots": "plots",
    "simulate": "simulation",
    "write_simulation": "simulation",
}

__all__ = ["__version__", *_PUBLIC]

if TYPE_CHECKING:
    from bayeslink import plots
    from bayeslink.audit import draw_sample, evaluate_sample
    from bayeslink.decisions import Loss
    from bayeslink.differences import changes
    from bayeslink.downstream import chapman, lincoln_petersen, pool, population_size
    from bayeslink.em import assign_em, fellegi_sunter, fit_em
    from bayeslink.errors import BayeslinkError, InputError, OutputError, SettingsError
    from bayeslink.evaluation import evaluate
    from bayeslink.fields import (
        Field,
        custom,
        damerau_levenshtein,
        date,
        exact,
        geo,
        jaro_winkler,
        levenshtein,
        numeric,
        tokens,
    )
    from bayeslink.labels import export_labels, read_labels
    from bayeslink.linking import compare, link
    from bayeslink.penalized import fit_penalized, penalty_path
    from bayeslink.posthoc import block_curve, posthoc_blocks
    from bayeslink.priors import Overlap, Penalty
    from bayeslink.records import ReadOptions
    from bayeslink.sampler import sample
    from bayeslink.sensitivity_analysis import sensitivity
    from bayeslink.simulation import simulate, write_simulation


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'bayeslink' has no attribute {name!r}")
    module = importlib.import_module(f"bayeslink.{_PUBLIC[name]}")
    value = module if name == _PUBLIC[name] else getattr(module, name)
    globals()[name] = value
    return value
