"""What a column holds, told by its values first and by its name second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bayeslink.comparing.units import amounts
from bayeslink.suggesting import shapes
from bayeslink.suggesting.column_names import says_id, thing
from bayeslink.suggesting.date_formats import Formats, find_formats
from bayeslink.suggesting.shapes import share

Texts = Mapping[str, int]  # distinct cells, and how often each was found

_MOST = 0.8  # of the cells, that must look like it
_SOME = 0.3  # of the cells, that must be whole dates where others are years or months
_DECADES = 30  # years; of fewer, most differ in one digit, which then is no slip
_FEW = 60  # distinct values, at most, of a category
_PERSON = {"given name", "family name", "middle name", "full name", "second family name"}
_PLACES = {"city", "state", "county", "country", "birth place"}


def kind_of(name: str, texts: Texts) -> tuple[str, Formats | None]:
    """What the column of this name holds; for dates also how they are written."""
    if not texts:
        return "empty", None
    if len(texts) == 1:
        return "constant", None
    said = thing(name)
    for kind, pattern in (("e-mail", shapes.EMAIL), ("url", shapes.URL)):
        if share(texts, pattern.fullmatch) >= _MOST:
            return kind, None
    dates = find_formats(texts)
    partly = share(texts, shapes.PART_OF_DATE.fullmatch) if dates.share >= _SOME else 0.0
    if dates.share + partly >= _MOST and _may_be_dates(said, dates):
        return "date", dates
    return _kind_of_code(name, said, texts) or _kind_of_words(said, texts), None


def _may_be_dates(said: str | None, dates: Formats) -> bool:
    """Numbers of eight digits are dates where their years say so, unless day comes first."""
    named = said in ("birth date", "death date", "date")
    return named or dates.formats[0] not in ("%d%m%Y", "%m%d%Y")


def _kind_of_code(name: str, said: str | None, texts: Texts) -> str | None:
    """Of numbers, postcodes, phones and other codes; None if it is none of them."""
    numeric = share(texts, shapes.NUMBER.fullmatch)
    if said in ("latitude", "longitude") and numeric >= _MOST:
        return said
    uk, canada = shapes.UK_POSTCODE.fullmatch, shapes.CANADIAN_POSTCODE.fullmatch
    if share(texts, lambda t: uk(t) or canada(t)) >= _MOST:
        return "postcode"
    if said == "postcode" and share(texts, lambda t: uk(t) or shapes.POSTCODE.fullmatch(t)) >= 0.6:
        return "postcode"
    if said == "identity number" and share(texts, _has_digit) >= 0.6:
        return "identifier"
    if (said == "phone" or numeric < _MOST) and _are_phones(said, texts):
        return "phone"
    if numeric >= _MOST:
        return _kind_of_number(name, said, texts)
    if share(texts, _is_quantity) >= 0.9:
        return "number" if said not in ("latitude", "longitude") else said
    if _distinct(texts) >= 0.9 and share(texts, shapes.CODE.fullmatch) >= _MOST:
        return "identifier"
    return "house number" if said in ("house number", "unit") else None


def _is_quantity(text: str) -> bool:
    """Whether it is a number, be it of money, with a decimal comma or with a unit."""
    if any(shape.fullmatch(text) for shape in (shapes.NUMBER, shapes.MONEY, shapes.COMMA)):
        return True
    return bool(parts := amounts(text)) and parts[0][1] is not None


def _are_phones(said: str | None, texts: Texts) -> bool:
    def phone(text: str) -> bool:
        return bool(shapes.PHONE.fullmatch(text)) and 7 <= len(shapes.digits(text)) <= 15

    if share(texts, phone) < 0.7:
        return False
    written = share(texts, lambda t: t[0] == "+" or shapes.SEPARATED.fullmatch(t))
    return said == "phone" or written >= _MOST


def _kind_of_number(name: str, said: str | None, texts: Texts) -> str:
    whole = share(texts, shapes.WHOLE_NUMBER.fullmatch)
    if said == "age" and whole >= _MOST and share(texts, lambda t: len(t) <= 3) >= _MOST:
        return "age"
    if said in ("amount", "height", "weight") or whole < 0.95:
        return "number"
    if said in ("house number", "unit"):
        return "house number"
    years = share(texts, shapes.YEAR.fullmatch) >= 0.9
    if years and _DECADES < len(texts) <= 300:
        return "year"
    if len(texts) <= _FEW:
        return "category"
    if says_id(name):
        return "identifier"
    lengths = Counter(len(text.lstrip("+-")) for text, n in texts.items() for _ in range(n))
    padded = share(texts, lambda t: len(t) > 1 and t[0] == "0") > 0.01
    usual, n = lengths.most_common(1)[0]
    fixed = usual > 3 and n > 0.8 * lengths.total()  # a code, but for slips
    if len(lengths) > 3 and not padded and not fixed and _distinct(texts) < 0.9:
        return "number"
    return "identifier" if max(lengths) >= 6 and _distinct(texts) >= 0.5 else "code"


def _kind_of_words(said: str | None, texts: Texts) -> str:
    total = sum(texts.values())
    length = sum(n * len(text) for text, n in texts.items()) / total
    few = len(texts) <= min(_FEW, total / 10) and said not in _PERSON
    if few and not (said in _PLACES and length > 5 and len(texts) > 20):  # misspelt at times
        return "category"
    n_words = sum(n * len(text.split()) for text, n in texts.items()) / total
    letters = share(texts, shapes.LETTERS.fullmatch)
    if said in _PERSON and letters >= 0.6:
        return said if said != "full name" or n_words > 1.2 else "given name"
    if said in ("address", "second address", "street") or share(texts, _is_address) >= 0.5:
        return "street" if said == "street" else "address"
    if said in _PLACES:
        return "place"
    if said == "company" or share(texts, shapes.LEGAL_FORM.search) >= 0.4:
        return "company"
    if share(texts, _is_list) >= 0.4 and share(texts, _is_list_of_words) >= 0.4:
        return "list"  # of names and the like, written in many ways, words count: a text
    if said in ("title", "text") or n_words > 4.5 or length > 40:
        return "text"
    if letters >= _MOST and (person := _kind_of_person(said, n_words, texts)):
        return person
    if said == "name" or n_words > 2.5:
        return "text"
    return "words"


def _kind_of_person(said: str | None, n_words: float, texts: Texts) -> str | None:
    """Whether words are names of people, by how many of them are common names."""
    given, family = shapes.known_names()
    split = {text: shapes.plain_words(text).split() for text in texts}
    first = share(texts, lambda t: bool(split[t]) and split[t][0] in given)
    last = share(texts, lambda t: bool(split[t]) and split[t][-1] in family)
    somewhere = share(texts, lambda t: any(word in given for word in split[t]))
    if n_words > 1.5:
        inverted = share(texts, shapes.FAMILY_COMMA_GIVEN.fullmatch) >= _MOST
        wanted = 0.15 if said == "name" or inverted else 0.3
        return "full name" if somewhere >= wanted and n_words < 4 else None
    if first >= 0.3:
        return "given name"
    return "family name" if last >= 0.2 else None


def _is_address(text: str) -> bool:
    return text[0].isdigit() and bool(shapes.STREET.search(text))


def _is_list(text: str) -> bool:
    parts = [part.strip() for part in text.replace("|", ";").replace(";", ",").split(",")]
    if len(parts) == 2 and ";" not in text and "|" not in text:
        return all(len(part.split()) >= 2 for part in parts)  # not "Smith, John"
    return len(parts) > 1 and all(parts) and not any(map(str.isdigit, parts))


def _is_list_of_words(text: str) -> bool:
    parts = text.replace("|", ",").replace(";", ",").split(",")
    return len(text.split()) <= 1.5 * len(parts)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _distinct(texts: Texts) -> float:
    return len(texts) / sum(texts.values())
