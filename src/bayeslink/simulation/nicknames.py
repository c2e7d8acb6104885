"""Short and familiar forms of given names that `simulate` writes.

Most are marked in the table of the `name` comparison. Those below have no line there: a new line
would change what that comparison finds.
"""

from bayeslink.comparing.nicknames import SIMULATED_FORMS

# Each line: a name, then what people of that name also go by.
_MORE = """
Alexis Lexi
Antonio Toni Tonino
Christine Chris Tina
Francisco Paco
Giovanna Gianna
Guadalupe Lupe
Hannah Annie
José Pepe
Katarzyna Kasia
Kathleen Kath Kathy
Madison Maddie
Manuel Manolo
Małgorzata Gosia
Megan Meg
Mercedes Merche
Mohammed Mo
Nicola Nicky
Olivia Liv
Piotr Piotrek
Salvatore Totò
Santiago Santi
Stanisław Staszek
Steven Steve
Tadeusz Tadek
Theresa Terry
Tomasz Tomek
Valentina Vale
"""

NICKNAMES = {
    name.capitalize(): tuple(form.capitalize() for form in forms)
    for name, forms in SIMULATED_FORMS.items()
} | {name: tuple(forms) for name, *forms in map(str.split, _MORE.strip().splitlines())}
