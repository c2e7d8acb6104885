"""All comparisons by name, and what `bayeslink comparisons` says of them."""

from __future__ import annotations

import inspect
import re
import textwrap
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

EXAMPLES = {
    "exact": "sex:exact",
    "name": "Forename=first_name:name",
    "person_name": "Forename,Surname=first_name,last_name:person_name",
    "date": "dob:date:format=%d/%m/%Y,%Y-%m-%d",
    "numeric": "amount:numeric:cuts=0,.01,.05:relative=true",
    "text": "title:text",
    "address": "street+town=address:address",
    "postcode": "postcode:postcode",
    "phone": "phone=telephone:phone",
    "email": "email:email",
    "identifier": "ssn:identifier",
    "company": "employer:company",
    "collection": "languages:collection",
    "levenshtein": "surname:levenshtein:cuts=0,.25,.5",
    "damerau_levenshtein": "surname:damerau_levenshtein",
    "jaro_winkler": "surname:jaro_winkler:cuts=1,.92,.8",
    "tokens": "address:tokens",
    "geo": "latitude:geo:longitude=longitude:cuts=.5,5,50",
}
_OTHERS = re.compile(
    r" ?Other parameters as (?:for `exact`|there)(?:; `bands` does not apply)?\.", re.IGNORECASE
)
COMMON = "columns, name, normalise, missing, bands, m_prior, u_prior"


def describe(name: str) -> str:
    """What a comparison does, its settings and an example, for people."""
    function = COMPARISONS[name]
    said = inspect.cleandoc(function.__doc__ or "").split("\n\nParameters\n")[0]
    parts = [_OTHERS.sub("", " ".join(part.split())) for part in said.split("\n\n")]
    body = "\n".join(
        textwrap.fill(part, 78, initial_indent="  ", subsequent_indent="  ")
        for part in parts
        if part
    )
    own = [
        f"{p.name}={p.default!r}" if p.default is not p.empty else p.name
        for p in list(inspect.signature(function).parameters.values())[1:]
        if p.kind is not p.VAR_KEYWORD
    ]
    settings = textwrap.fill(
        f"settings: {', '.join([*own, COMMON])}", 78, initial_indent="  ", subsequent_indent="    "
    )
    example = f"  example: --on {EXAMPLES[name]}" if name in EXAMPLES else "  from Python only"
    return f"{name}\n{body}\n{settings}\n{example}"
