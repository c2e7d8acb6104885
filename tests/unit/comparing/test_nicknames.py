"""One table of nicknames serves the comparison and the simulation."""

from bayeslink.comparing.nicknames import nickname_groups
from bayeslink.simulation.mistakes import NICKNAMES


def test_simulated_forms_keep_their_order_and_share_a_group_with_the_name():
    assert NICKNAMES["Margaret"] == ("Maggie", "Peggy", "Meg")  # the order decides simulated bytes
    assert NICKNAMES["Salvatore"] == ("Totò",)
    groups = nickname_groups()
    assert groups["margaret"] & groups["maisie"]
    assert all(name.isalpha() for name in groups)  # no slash among them
