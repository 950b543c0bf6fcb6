"""`panpan login` and `panpan logout`: keys of model vendors, kept in the keyring or in a private file."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import click

from panpan.cli_kit.login import key_places, log_in, log_out, save_key, vendor_of, vendors_with_keys, way_to
from panpan.cli_kit.questions import TerminalQuestions
from panpan.config.locations import panpan_home
from panpan.config.stored_keys import FOLDER, LOGIN, MAX_KEY_CHARS, PACKAGE, StoredKeys
from panpan.errors import ConfigError
from panpan.models.model_list import check_key
from panpan.system.environment import how_to_install


@click.command("login")
@click.argument("provider", required=False)
@click.option("--list", "is_list", is_flag=True, help="Show where the key of each provider comes from, but no keys.")
def login(provider: str | None, is_list: bool) -> int:
    """Keep the API key of PROVIDER in your keyring, or else in a file that only you can read.

    Asks for the key and tries it at once. You can also pipe it:  pass show anthropic | panpan login anthropic
    """
    keys = _keys()
    if is_list:
        for vendor in vendors_with_keys():
            click.echo(f"{vendor.name:11} {', '.join(key_places(vendor, keys, os.environ)) or '-'}")
        if keys.uses_keyring:
            click.echo(f"\n{LOGIN} keeps keys in your keyring.")
        else:
            where = panpan_home(os.environ, Path.cwd()) / FOLDER
            how = "" if find_spec("keyring") else f" To use your system's keyring, run: {how_to_install(PACKAGE)}"
            click.echo(f"\n{LOGIN} keeps keys in {where}.{how}")
        return 0
    if sys.stdin.isatty() and sys.stdout.isatty():
        if (of := anyio.run(log_in, TerminalQuestions(), keys, os.environ, provider or "")) is None:
            return 1
        click.echo(f"To work with it:  {way_to(of, keys, os.environ)}")
        return 0
    if provider is None:
        raise ConfigError(f"name the provider: {LOGIN} PROVIDER")
    if sys.stdin.isatty():
        raise ConfigError(f"{LOGIN} asks on a terminal; do not redirect its output")
    return _take_piped(provider, keys)


@click.command("logout")
@click.argument("provider", required=False)
def logout(provider: str | None) -> int:
    """Remove the API key of PROVIDER that `panpan login` kept."""
    ask = TerminalQuestions() if sys.stdin.isatty() and sys.stdout.isatty() else None
    click.echo(anyio.run(log_out, ask, _keys(), os.environ, provider or ""))
    return 0


def _take_piped(provider: str, keys: StoredKeys) -> int:
    """Save the key on standard input, even if it cannot be checked, since nobody is there to ask."""
    vendor = vendor_of(provider)
    key = sys.stdin.buffer.read(MAX_KEY_CHARS).decode(errors="replace").strip()
    if not key:
        raise ConfigError("there is no key on standard input")
    check = anyio.run(check_key, vendor, key, os.environ)
    if check.verdict == "rejected":
        raise ConfigError(f"{check.reason}; nothing was kept")
    if check.reason:
        click.echo(f"panpan: {check.reason}", err=True)
    click.echo(save_key(vendor, key, check, keys, os.environ))
    return 0


def _keys() -> StoredKeys:
    return StoredKeys(panpan_home(os.environ, Path.cwd()))
