"""Command line parser with one-sentence error messages and suggestions for misspelled names."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn

from haptics.errors import ConfigurationError
from haptics.settings import NUMBER_HINT, unknown_name

_KINDS: dict[Any, str] = {float: "a number", int: "a whole number"}


class Parser(argparse.ArgumentParser):
    """Argument parser that accepts only unabbreviated options and suggests similar names."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Raise `ConfigurationError` with the message of argparse."""
        raise ConfigurationError(f"{message}; see '{self.prog} --help'.")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments and refuse unknown ones.

        By default, argparse returns the unknown arguments of a sub-command to its parent.
        """
        arguments = list(sys.argv[1:] if args is None else args)
        if self._subparsers is None:
            self._refuse_unknown_options(arguments)
        options, extra = super().parse_known_args(arguments, namespace)
        if extra:
            self.error(f"{self.prog} does not take {' '.join(extra)!r}")
        return options, extra

    def _refuse_unknown_options(self, arguments: Sequence[str]) -> None:
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for argument in arguments:
            if argument == "--":
                return
            name = argument.partition("=")[0]
            if argument.startswith("--") and " " not in argument and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise ConfigurationError(
                    f"'{self.prog}' has no option {name!r}."
                    + (f" Did you mean {near[0]!r}?" if near else "")
                    + f" See '{self.prog} --help'."
                )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            name = str(action.option_strings[0] if action.option_strings else action.metavar or action.dest)
            kind = f"value of {name}" if name.startswith("-") else name.lower()
            raise unknown_name(kind, str(value), map(str, action.choices))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in _KINDS:
                raise
            name = "/".join(action.option_strings) or action.metavar
            hint = f" {NUMBER_HINT}" if any(mark.isdigit() for mark in arg_string) else ""
            raise ConfigurationError(f"{name} {arg_string}: must be {_KINDS[action.type]}.{hint}") from None


class Version(argparse.Action):
    """The option ``--version``."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print the version of the package and exit."""
        sys.stdout.write(f"haptics {metadata.version('haptics')}\n")
        parser.exit()
