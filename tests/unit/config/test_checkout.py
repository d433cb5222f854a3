"""Commands of this installation, as messages tell the user to give them."""

import shlex

from codezero.config import checkout


def test_a_command_in_a_message_is_the_same_in_a_shell():
    words = ["swarm", "invite", "--folder", "my swarms/it's $HOME"]
    assert shlex.split(checkout.command(*words)) == [checkout.COMMAND, *words]
    assert checkout.command("eval", "--best-of", 8) == f"{checkout.COMMAND} eval --best-of 8"
