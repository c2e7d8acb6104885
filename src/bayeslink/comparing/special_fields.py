"""Comparisons for particular kinds of values: texts, names, phones, e-mails, postcodes, …"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bayeslink.comparing.codes import (
    EMAIL_LABELS,
    IDENTIFIER_LABELS,
    LIST_LABELS,
    PHONE_LABELS,
    POSTCODE_LABELS,
    bare_address,
    bare_company,
    bare_email,
    bare_identifier,
    bare_list,
    bare_phone,
    bare_postcode,
    email_ladder,
    identifier_ladder,
    list_ladder,
    phone_ladder,
    postcode_ladder,
)
from bayeslink.comparing.field_checks import checked_cuts, checked_flag, checked_parts
from bayeslink.comparing.fields import Field, is_auto, make_field, refuse_priors
from bayeslink.comparing.names import LABELS as NAME_LABELS
from bayeslink.comparing.names import bare_name, name_ladder
from bayeslink.comparing.rules import Ladder
from bayeslink.errors import SettingsError

_ALL = ("unicode", "case", "accents", "punctuation", "space")
_KEPT = ("unicode", "case", "accents", "space")  # punctuation means something


def text(
    column: str, cuts: Sequence[float] | str = "auto", *, codes: bool | str = "auto", **common: Any
) -> Field:
    """Titles, products, memos: likeness of words and letter groups, the rare ones counting most.

    From best to worst: equal; a model number or other code in common; one text cut off or
    contained in the other; alike from each of `cuts` on (the mean of two TF-IDF cosines, of words
    and of groups of three letters); alike, but with different codes; different. Cuts follow from
    the data unless given, as does whether codes count. Other parameters as for `exact`.
    """
    return _text("text", column, cuts, codes, common)


def address(column: str, cuts: Sequence[float] | str = "auto", **common: Any) -> Field:
    """Addresses, as `text`, once "st." is "street" and "w" is "west". Other parameters as there."""
    return _text("address", column, cuts, False, common, bare_address)


def company(column: str, cuts: Sequence[float] | str = "auto", **common: Any) -> Field:
    """Names of companies, as `text`, legal forms (Ltd, Inc, GmbH, …) left out."""
    return _text("company", column, cuts, False, common, bare_company)


def name(
    column: str,
    *,
    nicknames: Mapping[str, Iterable[str]] | None = None,
    part: str | Sequence[str | None] | None = None,
    **common: Any,
) -> Field:
    """Names of people.

    From best to worst: equal, split by how common the name is where that differs much (`bands`);
    a short or foreign form (Bob, Robert), or a word in common (Smith-Jones, Smith); edit distance
    up to a quarter; sounds alike; an initial; edit distance up to a half; different. Titles and
    suffixes are left out. Levels that hardly any pairs have are joined.

    `nicknames` adds to the embedded table: {"Robert": ["Robin"], …}. `part` takes one part of a
    whole name, "Smith, John" or "John Smith": "given" or "family"; "given last" or "family first"
    where "Smith John" is written without a comma. For either file, or a pair for A and B with None
    where the column is the part itself: `part=("family", None)`. Other parameters as for `exact`.
    """
    common.setdefault("bands", "auto")
    extra = None
    if nicknames is not None:
        if not isinstance(nicknames, Mapping):
            raise SettingsError(
                f'name({column!r}): nicknames takes forms by name, such as {{"Robert": ["Bob"]}}.'
            )
        extra = {str(k): [str(form) for form in forms] for k, forms in nicknames.items()}
    parts = checked_parts(column, part)
    own: dict[str, Any] = {"nicknames": extra} if extra else {}
    own |= {"part": [p or "" for p in parts]} if any(parts) else {}
    ladder = name_ladder(tuple((k, *forms) for k, forms in (extra or {}).items()))
    made = _ladder_field("name", column, NAME_LABELS, ladder, common, bare_name, own)
    return replace(made, options={**made.options, "part": parts}) if any(parts) else made


def person_name(first: str, last: str, **common: Any) -> list[Field]:
    """Given and family name, as two `name` fields.

    Where the two are swapped in some records, or one of them is missing, that becomes a level of
    its own in the model with dependent fields. `columns` takes ((first, last) in A, … in B).
    """
    sides = common.pop("columns", None)
    if sides is None:
        return [name(first, **common), name(last, **common)]
    (first_a, last_a), (first_b, last_b) = sides
    return [
        name(first, columns=(first_a, first_b), **common),
        name(last, columns=(last_a, last_b), **common),
    ]


def phone(column: str, **common: Any) -> Field:
    """Telephone numbers, however they are written.

    From best to worst: equal; equal without the code of area or country; one digit wrong or two
    swapped; the same area; different. Other parameters as for `exact`.
    """
    return _ladder_field("phone", column, PHONE_LABELS, phone_ladder(), common, bare_phone)


def email(column: str, **common: Any) -> Field:
    """E-mail addresses: equal; the same mailbox elsewhere; one letter off; different."""
    return _ladder_field("email", column, EMAIL_LABELS, email_ladder(), common, bare_email)


def postcode(column: str, **common: Any) -> Field:
    """Postcodes: equal; one letter wrong; the same area (outward code, first digits); different."""
    return _ladder_field(
        "postcode", column, POSTCODE_LABELS, postcode_ladder(), common, bare_postcode
    )


def identifier(column: str, **common: Any) -> Field:
    """Identity numbers: equal; one letter or digit wrong, or two swapped; different."""
    return _ladder_field(
        "identifier", column, IDENTIFIER_LABELS, identifier_ladder(), common, bare_identifier
    )


def collection(column: str, **common: Any) -> Field:
    """Lists and sets, such as "tea; milk": the same; one within the other; some in common."""
    return _ladder_field("collection", column, LIST_LABELS, list_ladder(), common, bare_list)


# --------------------------------------------------------------------------------------------------


def _ladder_field(
    kind: str,
    column: str,
    labels: Sequence[str],
    ladder: Ladder,
    common: dict[str, Any],
    canonical: Callable[[str], str],
    own: Mapping[str, Any] | None = None,
) -> Field:
    common.setdefault("normalise", _ALL if kind == "name" else _KEPT)
    options = {"ladder": ladder, "canonical": canonical, "join": True}
    if common.get("m_prior") is not None or common.get("u_prior") is not None:
        options["join"] = False  # the priors are for all levels
    if common.get("bands") == "auto" and not options["join"]:
        common["bands"] = None
    return make_field(kind, column, list(labels[:-1]), labels[-1], (), common, own or {}, options)


def _text(
    kind: str,
    column: str,
    cuts: Sequence[float] | str,
    codes: bool | str,
    common: dict[str, Any],
    canonical: Callable[[str], str] | None = None,
) -> Field:
    refuse_priors(kind, column, common)
    common.setdefault("normalise", _KEPT)
    common.setdefault("bands", "auto")
    fixed = () if is_auto(cuts) else checked_cuts(column, cuts, rising=False)
    if fixed and (fixed[0] >= 1 or fixed[-1] <= 0):
        raise SettingsError(f"{column!r}: cuts of {kind} lie between 0 and 1, got {cuts!r}.")
    coded = None if is_auto(codes) else checked_flag(column, "codes", codes)
    own: dict[str, Any] = {"cuts": fixed} if fixed else {}
    own |= {"codes": coded} if kind == "text" and coded is not None else {}
    options: dict[str, Any] = {"codes": coded, "alike": (), "settle": True, "join": True}
    options |= {"canonical": canonical} if canonical else {}
    return make_field(kind, column, ["different"], "equal", fixed, common, own, options)
