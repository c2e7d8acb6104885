"""The model of m and u as run.json has it, and the weights of a saved run from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayeslink.comparing.fields import Field
from bayeslink.model.dependence import Dependence, Tree
from bayeslink.model.error_counts import ErrorLaw, ErrorPriors
from bayeslink.model.structure import Dependent, Structure
from bayeslink.model.weights import Parameters, Priors
from bayeslink.pairs.source import Floats


def structure_data(
    structure: Structure, parameters: Parameters, fields: Sequence[Field]
) -> dict[str, Any]:
    """The model as plain data: what depends on what, and the law of which fields are wrong.

    `u` of a dependence has a row for each level of the other field, the first for none seen.
    """
    tree, names = structure.tree, [f.name for f in fields]
    out: dict[str, Any] = {
        "name": structure.name,
        "certain_links": tree.n_certain,
        "certain_nonlinks": tree.n_pairs,
        "dependences": [
            {
                "field": names[d.field],
                "on": names[d.on],
                "strength": d.strength,
                "gain": d.gain,
                "u": np.exp(d.log_u[:, 1 : fields[d.field].n_levels + 1]).tolist(),
            }
            for d in tree.dependences
        ],
    }
    if isinstance(parameters, Dependent):
        law, n = parameters.law, len(fields)
        h, level = np.exp(law.log_h), np.exp(law.log_level)
        out["wrong_fields"] = [h[a, : n - a + 1].tolist() for a in range(n + 1)]
        out["wrong_odds"] = dict(zip(names, np.exp(law.log_r).tolist(), strict=True))
        out["levels"] = {
            f.name: level[j, 1 : f.n_levels + 1].tolist() for j, f in enumerate(fields)
        }
    return out


def saved_parameters(
    data: Mapping[str, Any], table: pa.Table, fields: Sequence[Field]
) -> Parameters:
    """m and u of a saved run, from the `structure` of its run.json and its parameters.parquet."""
    priors, place = Priors.of(fields), {f.name: j for j, f in enumerate(fields)}
    m, u = np.zeros((2, *priors.used.shape))
    for row in table.to_pylist():
        at = place[row["field"]], row["level"]
        m[at], u[at] = row["m"], row["u"]
    if "wrong_odds" not in data:
        return Parameters(m, u, priors.used)
    shape = priors.used.shape
    law = ErrorLaw(
        ErrorPriors.of(fields),
        _logs(data["wrong_fields"], (len(fields) + 1,) * 2),
        np.log([data["wrong_odds"][f.name] for f in fields]),
        _logs([[1.0, *data["levels"][f.name]] for f in fields], shape),
    )
    dependences = tuple(
        Dependence(
            place[d["field"]],
            place[d["on"]],
            d["strength"],
            d["gain"],
            _logs([[1.0, *row] for row in d["u"]], (len(d["u"]), shape[1])),
        )
        for d in data["dependences"]
    )
    tree = Tree(dependences, data["certain_links"], data["certain_nonlinks"])
    return Dependent(m, u, priors.used, law, tree)


def _logs(rows: Sequence[Sequence[float]], shape: tuple[int, ...]) -> Floats:
    """Logs of rows that may be shorter than the table they fill; 0 where they end."""
    out: NDArray[np.float64] = np.zeros(shape)
    for k, row in enumerate(rows):
        out[k, : len(row)] = np.log(row)
    return out
