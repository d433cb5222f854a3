from importlib.resources import files

import pytest
import yaml

from codezero.identity.names import animal_name


@pytest.mark.parametrize(
    ("peer_id", "name"),
    [
        # From public logs and dashboards of RL Swarm nodes: issues 422, 119 and 94 of gensyn-ai/rl-swarm, and a log
        # that a user published.
        ("Qmd5Z5gHoA6rTG5ba8X5NmmyXCuC11L6kPzWhdcBfTDSPX", "ferocious giant hedgehog"),
        ("QmYii94drSM2nDZ8BAbyzG2EHzC41ko5X1Xt1NcWvv3Xb6", "dormant toothy bat"),
        ("QmRzqfPNGuudjnz1bkE2i45YGCEtnYx9PtGp2aiVJfKhAc", "timid tall spider"),
        ("QmdobaGrmNF7cPzYXiUL2J3vz7ZRwXVr9oCAwi6bRnRATw", "quick tricky toad"),
    ],
)
def test_peers_have_the_names_under_which_the_public_network_knows_them(peer_id, name):
    assert animal_name(peer_id) == name


@pytest.mark.parametrize("text", ["", "\x1b[2J", "\ud800", "é🦊", "Q" * 1_000_000])
def test_any_text_has_a_name_of_three_plain_words(text):
    words = animal_name(text).split(" ")
    assert len(words) == 3
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)


def test_the_table_has_the_networks_length():
    table = yaml.safe_load((files("codezero.identity") / "names.yaml").read_text())
    assert {key: len(words) for key, words in table.items()} == {"adjectives": 245, "animals": 220}
