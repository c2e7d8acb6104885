"""What a column's name says: its words, and which well-known thing it is a name of."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache

# Thing -> what columns of it are called, written together. Within longer names, too.
_CALLED = {
    "given name": "firstname forename forenames givenname givennames gname fname firstnm givenn "
    "christianname vorname vornamen rufname prenom prenoms prenomusuel nombre nombres nombrepila "
    "primernombre nome voornaam voornamen fornavn fornamn imie etunimi jmeno given forname "
    "namefirst",
    "family name": "lastname surname surnames familyname lname lastnm nachname familienname zuname "
    "nom nomdefamille nomfamille nomdenaissance nomnaissance nomnaiss nomusage nomdusage patronyme "
    "apellido apellidos apellido1 primerapellido cognome sobrenome achternaam efternamn efternavn "
    "etternavn nazwisko sukunimi prijmeni sname namelast family secondname",
    "second family name": "apellido2 segundoapellido secondsurname surname2",
    "middle name": "middlename middlenames midname mname middleinitial middle mi secondforename "
    "otherforenames othernames",
    "full name": "fullname wholename personname completename namefull patientname customername "
    "clientname employeename membername studentname nomcomplet nometprenom nomprenom nomprenoms "
    "nombrecompleto nombreyapellidos nomecompleto nomecognome cognomenome vollername",
    "birth date": "dateofbirth birthdate dob bdate birthday birthdt geburtsdatum geburtstag gebdat "
    "gebdatum datenaissance datedenaissance fechanacimiento fechadenacimiento geboortedatum "
    "dateborn born bornon birth datebirth nele neele nee ddn naissance datenaiss dtnaiss datnaiss "
    "geboren geborenam geb gebdt gebam fecnac fechanac fnac fnacimiento nacimiento fecnacimiento "
    "nacido nacidoel datanascita datadinascita nascita datanasc datanascimento datadenascimento "
    "dtnasc nascimento natoil fodelsedatum fodselsdato syntymaaika dataurodzenia geboortedat",
    "birth year": "birthyear yearofbirth yob byear geburtsjahr",
    "birth month": "birthmonth monthofbirth mob bmonth",
    "birth day": "birthdayofmonth dayofbirth bday",
    "death date": "dateofdeath deathdate dod died diedon death datedeces datedudeces deces "
    "dtdeces decede decedele todesdatum sterbedatum todestag gestorben gestorbenam fechadefuncion "
    "fechadedefuncion defuncion fallecimiento fechafallecimiento fecdef datamorte datadecesso "
    "decesso datadimorte datadeobito obito datumoverlijden overlijdensdatum dateofpassing",
    "admission date": "admission admissiondate dateofadmission admitted admittedon admdate "
    "dateadmission datedadmission entree dateentree datedentree dtentree aufnahme aufnahmedatum "
    "eintritt eintrittsdatum ingreso fechaingreso fechadeingreso ricovero dataricovero opname "
    "opnamedatum",
    "discharge date": "discharge dischargedate dateofdischarge discharged sortie datesortie "
    "datedesortie entlassung entlassungsdatum entlassdatum austritt austrittsdatum fechaalta "
    "fechadealta dimissione datadimissione ontslagdatum",
    "registration date": "registration registrationdate dateregistered registeredon enregistrement "
    "dateenregistrement inscription dateinscription registrierung meldedatum fecharegistro "
    "dataregistrazione",
    "age": "age alter ageyears ageinyears edad eta idade leeftijd",
    "sex": "sex gender geschlecht sexe sexo sx geschl genre genero sesso geslacht kjonn kon",
    "postcode": "postcode postalcode zip zipcode plz codepostal pcode postzip zip5 cp cap "
    "postleitzahl codpostal codigopostal codicepostale codepost postnummer postnr",
    "phone": "phone phonenumber telephone tel telno telephonenumber mobile mobilenumber cell "
    "cellphone phoneno fax telefon contactnumber landline telefono telefone telefoon handy movil "
    "portable cellulare celular gsm numtel numerotelephone",
    "e-mail": "email emailaddress mail emailid eml",
    "address": "address addr addressline streetaddress address1 addr1 addressline1 adresse "
    "residence homeaddress mailingaddress adr anschrift direccion domicilio indirizzo endereco "
    "adres domicile",
    "second address": "address2 addr2 addressline2",
    "street": "street streetname road str strasse rue calle roadname via straat strassenname "
    "nomrue nomvoie voie rua",
    "house number": "streetnumber streetno streetnum housenumber houseno housenum housenr "
    "hausnummer stno doornumber "
    "buildingnumber hausnr numerorue numrue numvoie numerovoie huisnummer numerocivico civico",
    "unit": "unitnumber unit apartment apt flat flatnumber aptnumber",
    "city": "city town suburb locality municipality ort wohnort stadt gemeinde ville commune "
    "localite ciudad municipio localidad poblacion citta comune cidade concelho plaats woonplaats "
    "cityname townname",
    "state": "state province region bundesland statecode provincia provincie",
    "county": "county district departement kreis landkreis",
    "country": "country nation countrycode land pays pais paese",
    "birth place": "birthplace placeofbirth birthcity birthtown pob lieudenaissance lieunaissance "
    "lieunaiss villenaissance communenaissance geburtsort gebort lugarnacimiento "
    "lugardenacimiento luogonascita luogodinascita comunenascita comunedinascita geboorteplaats "
    "localnascimento naturalidade",
    "occupation": "occupation job profession occup jobtitle metier beruf profesion professione "
    "ocupacion beroep",
    "identity number": "ssn socialsecurity socialsecuritynumber socsecid nino nhs nhsnumber "
    "nationalid nationalinsurancenumber passport passportnumber taxid driverlicense "
    "driverslicense licensenumber medicare medicarenumber mrn isbn issn ean upc gtin doi vat "
    "vatnumber iban sin personnummer cpr ahv ahvnr nir numsecu numerosecu securitesociale "
    "numerosecuritesociale nss dni nif nie codicefiscale curp pesel bsn svnr versichertennummer "
    "sozialversicherungsnummer",
    "company": "company companyname organisation organization org firm employer business "
    "businessname vendor supplier manufacturer brand",
    "title": "title booktitle papertitle productname product itemname producttitle",
    "text": "description memo notes note comment comments remarks remark summary abstract details",
    "amount": "amount price cost value total amt salary income balance fee sum betrag listprice "
    "quantity qty revenue",
    "height": "height heightcm heightm taille taillecm groesse grosse korpergrosse koerpergroesse "
    "talla altura estatura altezza statura lengte bodyheight",
    "weight": "weight weightkg poids poidskg gewicht korpergewicht koerpergewicht peso bodyweight",
    "latitude": "latitude lat latitud latitudine breitengrad geobreite",
    "longitude": "longitude lon lng long longitud longitudine laengengrad langengrad geolaenge",
    "year": "year yr jahr pubyear annee an ano anio anno jaar",
    "month": "month mois monat mes mese maand",
    "day": "day jour tag dia giorno dag",
    "date": "date transactiondate createdat datum fecha data",
    "name": "name nm",
    "authors": "authors author writers",
}
# These count only as the whole name: in a longer one they may mean anything.
_WHOLE_TEXT = """
name nm date day title value total year mi land middle first given family long lat product str
sum state region job author note mail org unit flat number text address born nom nome nombre cp
cap birth naissance nee nele geb death admission discharge registration inscription sortie entree
died deces ingreso via rua voie land ort taille grosse talla peso an ano anio anno annee jahr jaar
month mois monat mes mese maand jour tag dia giorno dag data fecha datum alta kon eta adr portable
commune civico nie sin cell domicile
"""
_WHOLE = frozenset(_WHOLE_TEXT.split())
# Parts of a birth date, in words beside which another one speaks of birth.
_BORN_TEXT = """
birth born dob naiss naissance nee ne geburt geburts geb gebdat nac nacimiento nasc nascita
nascimento geboorte
"""
_BORN = frozenset(_BORN_TEXT.split())
_PARTS = {"year": "y yyyy aaaa", "month": "m mm mon", "day": "d dd jj tt"}
_PART_OF = {
    word: part
    for part, short in _PARTS.items()
    for word in (*_CALLED[part].split(), *short.split())
}
EVENTS = frozenset(("death date", "admission date", "discharge date", "registration date"))
# A plain "name" may be that of a person, a thing or a company.
_BY_THE_WAY = ({"name", "title"}, {"name", "full name"}, {"name", "company"})
_NAMES = {called: thing for thing, names in _CALLED.items() for called in names.split()}
# Words about whom or which: columns that differ in one of them are different things.
_OF_WHOM_TEXT = """
mother father spouse partner maiden previous former old emergency kin guardian parent child
alias work office billing shipping husband wife doctor gp physician second alternate
mere pere conjoint conjointe epouse epoux medecin madre padre conyuge esposo esposa medico
mutter vater ehepartner ehegatte arzt moeder vader arts coniuge marito moglie
"""
_OF_WHOM = frozenset(_OF_WHOM_TEXT.split())
_NOISE_TEXT = """
person patient customer client member student employee applicant subject respondent record the
of raw clean orig original current primary main fake txt str col field c1 code
"""
_NOISE = frozenset(_NOISE_TEXT.split())
_ID_WORDS_TEXT = """
id ids identifier key pk uid uuid guid recid rowid rec no nr num ref identifiant numero nummer
kennung matricule matricola codigo dossier ipp
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

    >>> thing("Patient_Forename"), thing("DOB"), thing("zip code"), thing("Nom et prénom")
    ('given name', 'birth date', 'postcode', 'full name')
    """
    found = words(name)
    whole = "".join(found)
    if whole in _NAMES:
        return _NAMES[whole]
    if part := _part_of_birth(found):
        return part
    if {"given name", "family name"} <= {_NAMES.get(word) for word in found}:
        return "full name"
    kept = [word for word in found if word not in _NOISE and word not in _OF_WHOM]
    if "".join(kept) in _NAMES:
        return _NAMES["".join(kept)]
    parts = {
        "".join(kept[i:j]): j - i for i in range(len(kept)) for j in range(i + 1, len(kept) + 1)
    }
    known = [part for part in parts if part in _NAMES and part not in _WHOLE]
    return _NAMES[max(known, key=lambda part: (parts[part], len(part)))] if known else None


def _part_of_birth(found: tuple[str, ...]) -> str | None:
    """Of words such as birth and year, or geburtsjahr, which part of a birth date they name."""
    for word in found:
        born = next((b for b in sorted(_BORN, key=len) if word == b), None)
        if born and (parts := {_PART_OF[w] for w in found if w in _PART_OF}):
            return f"birth {parts.pop()}" if len(parts) == 1 else None
        for stem in ("geburts", "geboorte", "birth", "naiss"):
            rest = word.removeprefix(stem) if word.startswith(stem) else word.removesuffix(stem)
            if rest != word and len(rest) > 2 and rest in _PART_OF:
                return f"birth {_PART_OF[rest]}"
    return None


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
