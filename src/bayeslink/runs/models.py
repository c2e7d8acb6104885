"""model.json: what a run learned of m and u, for the next linkage to start from."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayeslink import __version__
from bayeslink.comparing.fields import GIVEN, Field
from bayeslink.comparing.parsing import fields_from as made_from
from bayeslink.data.read_options import ReadOptions
from bayeslink.data.records import DEFAULTS
from bayeslink.errors import InputError, SettingsError
from bayeslink.model.error_counts import ErrorPriors
from bayeslink.model.structure import INDEPENDENT
from bayeslink.pairs.source import Floats, Pairs
from bayeslink.plain import plain
from bayeslink.runs.schema import NotAsWrittenError, either, listed, maybe, record, share, text
from bayeslink.runs.structure_data import structure_data
from bayeslink.settings import FOUND

if TYPE_CHECKING:
    from bayeslink.runs.run import Run

FILE = "model.json"
_FIXED = 1e9  # pairs that hold m and u where they are
_BY_LEVEL = ("m_prior", "links_at_level", "m", "u")
_ID = maybe(either(text, listed(maybe(text), 2)))
_MODEL = record(
    {
        "id": _ID,
        "missing": listed(listed(text), 2),
        **dict.fromkeys(("wrong_fields", "wrong_fields_before"), listed(listed(share))),
    },
    fields=listed(
        record(
            settings=record({"compare": text, "name": text}, column=text),
            levels=listed(text),
            **dict.fromkeys(_BY_LEVEL, listed(share)),
        )
    ),
)


def model_of(run: Run) -> dict[str, Any]:
    """Fields, priors and posterior of m and u of a run, as model.json has them.

    Given the links, the posterior of m is Dirichlet: the prior and `links_at_level`, the links
    expected at each level. Not knowing the links for certain makes it a mixture of such, for which
    the one with the mean counts stands.
    """
    parameters, named = run.parameters, run.settings.id
    linked, p = _expected_links(run)
    counts = _expected_counts(run, linked, p)
    told = {f.name: f for f in run.settings.fields}
    fields = []
    for j, f in enumerate(run.pairs.fields):
        levels = slice(1, f.n_levels + 1)
        fields.append(
            {
                "settings": _pinned(told[f.name], f),
                "levels": list(f.labels),
                "m_prior": list(f.m_prior),
                "links_at_level": counts[j, levels].tolist(),
                "m": parameters.m[j, levels].tolist(),
                "u": parameters.u[j, levels].tolist(),
            }
        )
    return {
        "bayeslink": __version__,
        "links": float(counts.sum(1).max(initial=0)),
        **({} if named is FOUND else {"id": plain(named)}),  # of pairs compared elsewhere
        "missing": [list(read.missing) for read in run.settings.read],
        "fields": fields,
        **_wrong_fields(run, linked, p),
        "structure": structure_data(run.fit.structure, parameters, run.pairs.fields),
    }


def settled_of(field: Field) -> dict[str, Any]:
    """What the data told of the levels of a field, as settings of a field that fix it."""
    told: dict[str, Any] = {"bands": list(field.bands)}
    if field.kind in ("numeric", "date") and field.cuts:
        told["cuts"] = list(field.cuts)
    if field.kind == "numeric":
        told["relative"] = bool(field.options["relative"])
    if field.kind == "date":
        told |= {slip: bool(field.options[slip]) for slip in ("one_digit", "exchanged")}
    if "alike" in field.options:
        told |= {"alike": list(field.options["alike"]), "codes": bool(field.options["codes"])}
    return told


def _left_open(field: Field) -> bool:
    """Whether levels follow from the data, or from priors by their labels."""
    options = field.options
    by_label = any(isinstance(options.get(which), Mapping) for which in ("m_prior", "u_prior"))
    return bool(options.get("settle") or options.get("join") or by_label) or (
        options.get("bands") == "auto"
    )


def _pinned(asked: Field, settled: Field) -> dict[str, Any]:
    """The settings of a field that fix all that the data told."""
    settings = dict(asked.settings)
    if not _left_open(asked):
        return settings
    told = settled_of(settled)
    alike, codes = told.pop("alike", ()), told.pop("codes", False)
    settings |= told
    if alike:
        settings["cuts"] = alike
    if asked.kind == "text":
        settings["codes"] = codes
    return settings


def _expected_links(run: Run) -> tuple[Pairs, Floats]:
    """Pairs that may be links, and with which probability."""
    linked, p = run.fit.linked, np.ones(run.fit.n_links)
    if run.posterior is not None:
        known = run.posterior.blocks.known
        linked = run.posterior.blocks.candidates.with_more(known)
        p = np.append(run.posterior.probability, np.ones(len(known)))
    return linked, p


def _expected_counts(run: Run, linked: Pairs, p: Floats) -> Floats:
    """[field, level]: links expected there."""
    width = max(f.n_levels for f in run.pairs.fields) + 1
    return np.array(
        [np.bincount(column, p, width) for column in linked.levels.T], np.float64
    ).reshape(len(run.pairs.fields), width)


def _wrong_fields(run: Run, linked: Pairs, p: Floats) -> dict[str, list[list[float]]]:
    """[missing][wrong]: links expected; and those that were the prior of the run."""
    errors, n = ErrorPriors.of(run.pairs.fields), len(run.pairs.fields)
    seen, wrong = errors.seen_and_wrong(linked.levels)
    found = np.zeros((n + 1, n + 1))
    np.add.at(found, ((~seen).sum(1), wrong.sum(1)), p)
    told = {"wrong_fields": [found[a, : n - a + 1].tolist() for a in range(n + 1)]}
    before = run.settings.wrong_fields
    if before is not None and run.settings.structure != INDEPENDENT:
        told["wrong_fields_before"] = plain(before)
    return told


def wrong_fields_from(
    model: Mapping[str, Any], fields: Sequence[Field], strength: float
) -> list[list[float]] | None:
    """Links of a model, [missing][wrong]; None unless the fields are all of the model's."""
    of_model = {e["settings"].get("name", e["settings"]["column"]) for e in model["fields"]}
    if of_model != {f.name for f in fields} or "wrong_fields" not in model:
        return None
    if not 0 < strength < math.inf:
        return None
    before = model.get("wrong_fields_before") or [[0.0] * len(r) for r in model["wrong_fields"]]
    return [
        [x + strength * y for x, y in zip(*rows, strict=True)]
        for rows in zip(before, model["wrong_fields"], strict=True)
    ]


def fields_from(
    model: Any, fields: Sequence[Field], strength: float, structure: str
) -> list[Field]:
    """Fields with what a model learned as their priors.

    Parameters
    ----------
    model
        A `Run`, a run directory, a model.json or what it holds.
    fields
        The fields to put it on, by name; those of the model if there are none.
    strength
        How much of what was learned counts, as a share of its links; inf: m and u are fixed.
    """
    if not isinstance(strength, Real) or math.isnan(strength) or strength < 0:
        raise SettingsError(f"strength must be a number from 0 up, got {strength!r}.")
    if math.isinf(strength) and structure != INDEPENDENT:
        raise SettingsError(
            "m and u can be held fixed (strength=inf) with structure='independent' only: dependent "
            "fields learn how many fields of a link are wrong from the links themselves."
        )
    by_name = {
        entry["settings"].get("name", entry["settings"]["column"]): entry
        for entry in read_model(model)["fields"]
    }
    if not fields:
        fields = [_field(entry) for entry in by_name.values()]
    if strange := [f.name for f in fields if f.name not in by_name]:
        raise SettingsError(
            f"the model knows no field {strange[0]!r}. It has {', '.join(map(repr, by_name))}."
        )
    return [_with_prior(f, by_name[f.name], float(strength)) for f in fields]


def _field(entry: Mapping[str, Any]) -> Field:
    if entry["settings"].get("compare") in ("custom", GIVEN):
        raise SettingsError(
            f"the field {entry['settings']['column']!r} of the model cannot be made from a file. "
            "Give the fields, too."
        )
    (field,) = made_from(entry["settings"])
    return field


def _with_prior(field: Field, entry: Mapping[str, Any], strength: float) -> Field:
    """Priors by level, told by its label."""
    if _left_open(field):
        return _with_prior_by_label(field, entry, strength)
    place = {label: k for k, label in enumerate(entry["levels"])}
    _refuse_others(field, entry["settings"], ("bands",))
    if lacking := [label for label in field.labels if label not in place]:
        raise SettingsError(
            f"the model has no level {lacking[0]!r} of the field {field.name!r}. Give it the "
            "cuts and bands that it had."
        )
    _refuse_others(field, entry["settings"], ("cuts",))
    at = [place[label] for label in field.labels]
    m, u, seen = (np.array(entry[key])[at] for key in ("m", "u", "links_at_level"))
    if math.isinf(strength):
        return _priors(field, _FIXED * m / m.sum(), _FIXED * 1e6 * u / u.sum())
    found = _priors(field, np.array(field.m_prior) + strength * seen, np.array(field.u_prior))
    more = place.keys() - {*field.labels}  # of names that were swapped
    if not more or not strength:
        return found
    by_label = dict(zip(field.labels, found.m_prior, strict=True))
    for k in (place[label] for label in more):
        by_label[entry["levels"][k]] = entry["m_prior"][k] + strength * entry["links_at_level"][k]
    options, settings = ({**told, "m_prior": by_label} for told in (found.options, found.settings))
    return replace(found, options=options, settings=settings)


def _with_prior_by_label(field: Field, entry: Mapping[str, Any], strength: float) -> Field:
    """As `_with_prior` where levels follow from the data: they are to be those of the model."""
    _refuse_others(field, entry["settings"], ("compare", "cuts", "bands"))
    if strength == 0:
        return field
    settings = {k: v for k, v in field.settings.items() if k != "bands" or v != "auto"}
    fixed = ("cuts", "relative", "one_digit", "exchanged", "bands", "codes")
    settings |= {"bands": [], **{k: v for k, v in entry["settings"].items() if k in fixed}}
    m, u, seen, own = (np.array(entry[k]) for k in ("m", "u", "links_at_level", "m_prior"))
    prior = own + strength * seen if math.isfinite(strength) else _FIXED * m
    settings["m_prior"] = dict(zip(entry["levels"], prior.tolist(), strict=True))
    if math.isinf(strength):
        fixed_u = (_FIXED * 1e6 * u).tolist()
        settings["u_prior"] = dict(zip(entry["levels"], fixed_u, strict=True))
    (made,) = made_from(settings)
    return made


def _refuse_others(field: Field, learned: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse a comparison, cuts or bands that were given and are not those of the model."""
    for key in keys:
        given = field.settings.get(key, "auto")
        known = learned.get(key, "exact" if key == "compare" else [])
        if given not in ("auto", known):
            raise SettingsError(
                f"the model has other levels of the field {field.name!r}: its {key} is {known!r}, "
                f"not {given!r}. Give it the {key} that it had, or leave the fields out to have "
                "those of the model."
            )


def _priors(field: Field, m: Floats, u: Floats) -> Field:
    given = {"m_prior": tuple(m.tolist()), "u_prior": tuple(u.tolist())}
    settings = {**field.settings, **{key: list(value) for key, value in given.items()}}
    return replace(field, m_prior=given["m_prior"], u_prior=given["u_prior"], settings=settings)


def id_as_learned(model: Mapping[str, Any], otherwise: Any) -> Any:
    """The id columns that the files of a model had, if it says so."""
    found = model.get("id", otherwise)
    return tuple(found) if isinstance(found, list) else found


def read_as_learned(
    model: Mapping[str, Any], read: tuple[ReadOptions, ReadOptions]
) -> tuple[ReadOptions, ReadOptions]:
    """Missing words as the files of a model had them, where none are given."""
    words = model.get("missing", ((), ()))
    a, b = (
        replace(options, missing=own) if options.missing == DEFAULTS.missing else options
        for options, own in zip(read, words, strict=True)
    )
    return a, b


def read_model(model: Any) -> Mapping[str, Any]:
    """What model.json holds: of a `Run`, a run directory or the file, checked."""
    if hasattr(model, "settings") and hasattr(model, "pairs"):
        return model_of(model)
    if isinstance(model, str | os.PathLike):
        path = Path(model) / FILE if Path(model).is_dir() else Path(model)
        try:
            model = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(
                f"cannot read {path}: {str(error).splitlines()[0]}. Give a run directory or its "
                "model.json."
            ) from None
    try:
        _check(model)
    except NotAsWrittenError as error:
        raise InputError(
            f"this is no model of bayeslink, or it was damaged: {error} is missing, or not as it "
            "was written. Give a run, its directory or model.json."
        ) from None
    return model


def _check(model: Any) -> None:
    _MODEL(model, "")
    for k, entry in enumerate(model["fields"]):
        for key in _BY_LEVEL:
            empty = key in ("m", "u") and not sum(entry[key])
            if len(entry[key]) != len(entry["levels"]) or empty:
                raise NotAsWrittenError(f"fields[{k}].{key}")
    for key in ("wrong_fields", "wrong_fields_before"):
        n = len(model["fields"])
        if [len(row) for row in model.get(key, ())] not in ([], [*range(n + 1, 0, -1)]):
            raise NotAsWrittenError(key)
