"""What a column's name says: its words, and which well-known thing it is a name of."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

# Thing -> what columns of it are called, written together. Within longer names, too.
_CALLED = {
    "given name": "firstname forename forenames givenname givennames gname fname firstnm givenn "
    "christianname vorname prenom nombre nome voornaam fornavn given forname namefirst",
    "family name": "lastname surname surnames familyname lname lastnm nachname nomdefamille "
    "apellido apellidos cognome achternaam efternamn etternavn sname namelast family secondname",
    "middle name": "middlename middlenames midname mname middleinitial middle mi secondforename "
    "otherforenames othernames",
    "full name": "fullname wholename personname completename namefull patientname customername "
    "clientname employeename membername studentname",
    "birth date": "dateofbirth birthdate dob bdate birthday birthdt geburtsdatum geburtstag gebdat "
    "gebdatum datenaissance datedenaissance fechanacimiento fechadenacimiento geboortedatum "
    "dateborn born",
    "birth year": "birthyear yearofbirth yob byear geburtsjahr",
    "birth month": "birthmonth monthofbirth mob bmonth",
    "birth day": "birthdayofmonth dayofbirth bday",
    "death date": "dateofdeath deathdate dod",
    "age": "age alter ageyears ageinyears",
    "sex": "sex gender geschlecht sexe sexo",
    "postcode": "postcode postalcode zip zipcode plz codepostal pcode postzip zip5",
    "phone": "phone phonenumber telephone tel telno telephonenumber mobile mobilenumber cell "
    "cellphone phoneno fax telefon contactnumber landline",
    "e-mail": "email emailaddress mail emailid eml",
    "address": "address addr addressline streetaddress address1 addr1 addressline1 adresse "
    "residence homeaddress mailingaddress",
    "second address": "address2 addr2 addressline2",
    "street": "street streetname road str strasse rue calle roadname",
    "house number": "streetnumber streetno streetnum housenumber houseno housenum housenr "
    "hausnummer stno doornumber "
    "buildingnumber",
    "unit": "unitnumber unit apartment apt flat flatnumber aptnumber",
    "city": "city town suburb locality municipality ort stadt ville ciudad cityname townname",
    "state": "state province region bundesland statecode",
    "county": "county district",
    "country": "country nation countrycode land",
    "birth place": "birthplace placeofbirth birthcity birthtown pob",
    "occupation": "occupation job profession occup jobtitle",
    "identity number": "ssn socialsecurity socialsecuritynumber socsecid nino nhs nhsnumber "
    "nationalid nationalinsurancenumber passport passportnumber taxid driverlicense "
    "driverslicense licensenumber medicare medicarenumber mrn isbn issn ean upc gtin doi vat "
    "vatnumber iban sin personnummer cpr ahv",
    "company": "company companyname organisation organization org firm employer business "
    "businessname vendor supplier manufacturer brand",
    "title": "title booktitle papertitle productname product itemname producttitle",
    "text": "description memo notes note comment comments remarks remark summary abstract details",
    "amount": "amount price cost value total amt salary income balance fee sum betrag listprice "
    "weight height quantity qty revenue",
    "latitude": "latitude lat",
    "longitude": "longitude lon lng long",
    "year": "year yr jahr pubyear",
    "date": "date day transactiondate createdat datum",
    "name": "name nm",
    "authors": "authors author writers",
}
# These count only as the whole name: in a longer one they may mean anything.
_WHOLE_TEXT = """
name nm date day title value total year mi land middle first given family long lat product str
sum state region job author note mail org unit flat number text address born
"""
_WHOLE = frozenset(_WHOLE_TEXT.split())
# A plain "name" may be that of a person, a thing or a company.
_BY_THE_WAY = ({"name", "title"}, {"name", "full name"}, {"name", "company"})
_NAMES = {called: thing for thing, names in _CALLED.items() for called in names.split()}
# Words about whom or which: columns that differ in one of them are different things.
_OF_WHOM_TEXT = """
mother father spouse partner maiden previous former old emergency kin guardian parent child
alias work office billing shipping husband wife doctor gp physician second alternate
"""
_OF_WHOM = frozenset(_OF_WHOM_TEXT.split())
_NOISE_TEXT = """
person patient customer client member student employee applicant subject respondent record the
of raw clean orig original current primary main fake txt str col field c1 code
"""
_NOISE = frozenset(_NOISE_TEXT.split())
_ID_WORDS_TEXT = """
id ids identifier key pk uid uuid guid recid rowid rec no nr num ref
"""
_ID_WORDS = frozenset(_ID_WORDS_TEXT.split())


@lru_cache(4096)
def words(name: str) -> tuple[str, ...]:
    """The words of a column name, letter case and punctuation aside.

    >>> words("dateOfBirth"), words("Post-code")
    (('date', 'of', 'birth'), ('post', 'code'))
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(c)
    )
    return tuple(re.findall("[a-z]+[0-9]*|[0-9]+", plain.casefold()))


@lru_cache(4096)
def thing(name: str) -> str | None:
    """Which well-known thing a column of this name holds; None if the name does not say.

    >>> thing("Patient_Forename"), thing("DOB"), thing("zip code")
    ('given name', 'birth date', 'postcode')
    """
    found = words(name)
    whole = "".join(found)
    if whole in _NAMES:
        return _NAMES[whole]
    kept = [word for word in found if word not in _NOISE and word not in _OF_WHOM]
    if "".join(kept) in _NAMES:
        return _NAMES["".join(kept)]
    parts = {
        "".join(kept[i:j]): j - i for i in range(len(kept)) for j in range(i + 1, len(kept) + 1)
    }
    known = [part for part in parts if part in _NAMES and part not in _WHOLE]
    return _NAMES[max(known, key=lambda part: (parts[part], len(part)))] if known else None


def of_whom(name: str) -> frozenset[str]:
    """Words of the name that say of whom it is: "mother" in mother_first_name."""
    return _OF_WHOM.intersection(words(name))


def says_id(name: str) -> bool:
    """Whether a column of this name may hold ids of records: rec_id, PatientID, person_no."""
    found = words(name)
    return bool(found) and bool(_ID_WORDS.intersection((found[0], found[-1])))


def similarity(a: str, b: str) -> float:
    """How alike two column names are, from 0 to 1; 0.9 for two names of the same thing.

    >>> similarity("First Name", "first_name"), similarity("forename", "first_name")
    (1.0, 0.9)
    """
    x, y = words(a), words(b)
    if x == y:
        return 1.0
    if of_whom(a) != of_whom(b):
        return 0.0
    if "".join(x) == "".join(y):
        return 0.98
    thing_a, thing_b = thing(a), thing(b)
    if thing_a and thing_a == thing_b:
        return 0.9
    if {thing_a, thing_b} in _BY_THE_WAY:
        return 0.86
    shared = len({*x} & {*y}) / max(1, len({*x} | {*y}))
    letters = SequenceMatcher(None, "".join(x), "".join(y), autojunk=False).ratio()
    alike = max(shared, letters if letters > 0.75 else 0.0)
    return alike * (0.4 if thing_a and thing_b else 0.8)
