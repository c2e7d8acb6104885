"""The model of m and u as run.json has it, and the weights of a saved run from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayeslink.comparing.fields import Field
from bayeslink.model.structure import Dependent, Structure
from bayeslink.model.weights import Parameters


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
