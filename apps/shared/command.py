"""Parts of commands: the answer, selection and listing of named items, and the argument parser."""

from __future__ import annotations

import argparse
import difflib
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

from haptics.errors import ConfigurationError
from haptics.settings import NUMBER_HINT, unknown_name

_KINDS: dict[Any, str] = {float: "a number", int: "a whole number"}


@dataclass(frozen=True)
class Answer:
    """Answer of a command.

    Attributes
    ----------
    result : dict
        Result for ``--json``.
    text : str
        Text for users, with the same content.
    status : int
        Exit status.
    error : str
        Error message for standard error; empty on success.
    """

    result: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    status: int = 0
    error: str = ""


def package_versions(packages: Iterable[str], absent: str | None = None) -> dict[str, str | None]:
    """Return the versions of Python and of `packages`; `absent` for one that is not installed, as in a source tree."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = absent
    return versions


def make_folder(
    folder: Path, option: str = "--out", words: str = "cannot be made ({}); name a folder that can be written"
) -> None:
    """Create the folder of an `option`.

    Raises
    ------
    ConfigurationError
        If the folder cannot be created, with the reason in `words`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{option} = {str(folder)!r}: {words.format(error.strerror or error)}.") from error


def select(kind: str, names: Iterable[str], all_names: Iterable[str], word: str = "") -> list[str]:
    """Return the selected names without duplicates, in the order given; all names if none is given.

    Parameters
    ----------
    kind : str
        Kind of item, for the error message.
    names, all_names : iterable of str
        Requested names and available names.
    word : str
        Name that selects all items, if there is one.

    Raises
    ------
    ConfigurationError
        If a name is unknown.
    """
    requested, known = list(dict.fromkeys(names)), list(all_names)
    allowed = [*known, word] if word else known
    for name in requested:
        if name not in allowed:
            raise unknown_name(kind, name, allowed)
    return known if not requested or (word and word in requested) else requested


def listed(titles: Mapping[str, str]) -> str:
    """Format names and titles in two columns."""
    width = max(map(len, titles))
    return "\n".join(f"{name:<{width}}  {title}" for name, title in titles.items())


def repeatable(
    parser: argparse.ArgumentParser, flag: str, dest: str, metavar: str | None, text: str, **more: Any
) -> None:
    """Add an option that may be given several times."""
    parser.add_argument(flag, dest=dest, metavar=metavar, action="append", default=[], help=text, **more)


class Parser(argparse.ArgumentParser):
    """Argument parser with one-sentence error messages and suggestions for misspelled names.

    It accepts unabbreviated options only.
    """

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
        known = [name for name in self._option_string_actions if name.startswith("--")]
        for argument in arguments if self._subparsers is None else ():
            if argument == "--":
                break
            name = argument.partition("=")[0]
            if argument.startswith("--") and " " not in argument and name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                raise ConfigurationError(
                    f"'{self.prog}' has no option {name!r}."
                    + (f" Did you mean {near[0]!r}?" if near else "")
                    + f" See '{self.prog} --help'."
                )
        options, extra = super().parse_known_args(arguments, namespace)
        if extra:
            self.error(f"{self.prog} does not take {' '.join(extra)!r}")
        return options, extra

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

    def __init__(self, option_strings: Any, dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print the version of the package and exit."""
        sys.stdout.write(f"haptics {metadata.version('haptics')}\n")
        parser.exit()
