"""Asks the user questions on a terminal."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping, Sequence

from codezero.errors import ConfigError
from codezero.runtime.console import Console

_YES, _NO = ("y", "yes", "1", "true"), ("n", "no", "0", "false")


class NotAnswered(Exception):
    """Raised by Ctrl-C or the end of input at a question: the user wants to leave, and nothing has been started."""


class Terminal:
    """A terminal that asks questions. Ctrl-C at any of them raises NotAnswered."""

    def __init__(self, console: Console, *, interactive: bool | None = None) -> None:
        """`interactive` says whether somebody can answer; None takes that from standard input and output."""
        self.console = console
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty() if interactive is None else interactive

    def choose(self, question: str, options: Sequence[str]) -> int:
        """Asks for one of the options and returns its index; Enter takes the first."""
        self.console.line(question)
        for number, option in enumerate(options, 1):
            self.console.line(f"  {number}  {option}{' (Enter)' if number == 1 else ''}")
        numbers = [str(number) for number in range(1, len(options) + 1)]
        while True:
            answer = self.text("number: ") or "1"
            if answer in numbers:
                return numbers.index(answer)
            self.console.line(f"type a number from 1 to {len(options)}, or Enter for 1")

    def yes(self, question: str, default: bool) -> bool:
        while True:
            answer = self.text(f"{question} [{'Y/n' if default else 'y/N'}] ")
            if not answer:
                return default
            found = _parse_yes(answer)
            if found is not None:
                return found
            self.console.line("type y or n, or Enter for the one in capitals")

    def text(self, question: str) -> str:
        """Asks for a line and returns it without surrounding blanks; empty for Enter."""
        return self._typed(lambda: input(question)).strip()

    def secret(self, question: str) -> str:
        """Asks for a line and returns it as it was typed, which is not shown: a passphrase may end with a blank."""
        return self._typed(lambda: getpass.getpass(question))

    def _typed(self, read: Callable[[], str]) -> str:
        try:
            return read()
        except (EOFError, KeyboardInterrupt, UnicodeDecodeError) as error:
            self.console.line("")
            raise NotAnswered from error


def is_on(environment: Mapping[str, str], variable: str) -> bool:
    """Returns whether a yes-or-no variable says yes; unset and empty mean no. Raises ConfigError: it has another
    value."""
    text = environment.get(variable, "")
    found = _parse_yes(text) if text else False
    if found is None:
        raise ConfigError(f"{variable}={text} is not possible: use 1 or 0")
    return found


def _parse_yes(text: str) -> bool | None:
    """Returns the meaning of a yes or no, None for any other text."""
    word = text.strip().lower()
    return True if word in _YES else False if word in _NO else None
