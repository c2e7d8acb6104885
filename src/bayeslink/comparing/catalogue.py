"""All comparisons by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bayeslink.comparing import fields, special_fields

COMPARISONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        fields.exact,
        special_fields.name,
        special_fields.person_name,
        fields.date,
        fields.numeric,
        special_fields.text,
        special_fields.address,
        special_fields.postcode,
        special_fields.phone,
        special_fields.email,
        special_fields.identifier,
        special_fields.company,
        special_fields.collection,
        fields.levenshtein,
        fields.damerau_levenshtein,
        fields.jaro_winkler,
        fields.tokens,
        fields.geo,
        fields.custom,
    )
}
