"""What people write where they know nothing: words, and numbers and dates that stand for none."""

# Underscores stand for spaces.
_SURE = r"""
n/a #n/a n.a. n.a <na> - -- --- – — ? ?? ??? . .. ... * (null) <null> [null] \n (missing)
(blank) (none) unknown unk unkn missing not_known not_available not_applicable not_given
not_provided not_stated not_specified not_recorded not_entered no_data no_value unspecified
undefined undisclosed tbc tba tbd prefer_not_to_say unbekannt keine_angabe k.a.
inconnu inconnue non_renseigné non_renseigne non_connu non_disponible sans_objet desconocido
desconocida sin_dato sin_datos no_consta no_informado sconosciuto non_noto onbekend niet_bekend
nicht_bekannt nicht_angegeben ohne_angabe o.a. s/d n/d n.d. n.r. n/r desconhecido sem_informação
"""
_LIKELY = """
na nan null none nil blank empty no_name x xx xxx test refused declined none_given nr nd ns nc nk sr
sd kd ka ko nv inc vide vacio leer ukn uk zz zzz zzzz
"""

# Missing wherever they stand, letter case aside; they are no name, no place and no number.
SURE_WORDS = frozenset(word.replace("_", " ") for word in _SURE.split())
# Missing where they are far more common than other values: Null and Na are surnames, too.
LIKELY_WORDS = frozenset(word.replace("_", " ") for word in _LIKELY.split())
# Numbers that stand for none where they lie far outside all others.
_FILLER_NUMBERS_TEXT = """
-1 -9 -99 -999 -9999 99 999 9999 99999 999999 9999999
"""
FILLER_NUMBERS = frozenset(_FILLER_NUMBERS_TEXT.split())
# Days that stand for none where they are far more common than others.
_FILLER_DAYS_TEXT = """
9999-12-31 9999-01-01 9999-09-09 2999-12-31 2099-12-31 1900-01-01 1901-01-01 1899-12-30
1899-12-31 1753-01-01 1970-01-01 1111-11-11 0001-01-01 1000-01-01
"""
FILLER_DAYS = frozenset(_FILLER_DAYS_TEXT.split())
