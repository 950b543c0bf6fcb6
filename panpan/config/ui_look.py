"""The settings of the first screen, read in milliseconds.

The models that check settings take a quarter of a second to import, and the user can type in that time.
The rule: nothing is an error here. A wrong value counts as missing; `config.sources`, which reads the whole files a
moment later, tells the user.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from panpan.config.bounded_toml import parse_toml
from panpan.config.locations import Locations
from panpan.types.dataclass import dataclass

ThemeSetting: TypeAlias = Literal["auto", "light", "dark", "high-contrast", "plain"]

_THEMES: tuple[ThemeSetting, ...] = get_args(ThemeSetting)
_MAX_BYTES = 256_000


@dataclass(frozen=True, slots=True)
class UiLook:
    """Look of the terminal before the settings are loaded; the fields are those of `ui` in the settings."""

    theme: ThemeSetting = "auto"
    vim: bool = False
    plain: bool = False
    history_file: Path = Path(os.devnull)
    """File with the prompts of earlier sessions."""


def read_ui_look(
    cwd: Path, env: Mapping[str, str], *, plain: bool | None, given: Mapping[str, Any] | None = None
) -> UiLook:
    """Return the look that the user's own files set, ignoring errors in them.

    Args:
        cwd: Working directory.
        env: The environment.
        plain: The flag of that name.
        given: Values of the table `ui` on the command line, which win over the files.

    Raises:
        ConfigError: There is no such folder, or no panpan home.
    """
    locations = Locations.find(cwd, env)
    said = _ui_table(locations.user_settings) | _ui_table(locations.local_settings) | dict(given or {})
    return UiLook(
        theme=next((theme for theme in _THEMES if theme == said.get("theme")), "auto"),
        vim=said.get("vim") is True,
        plain=said.get("plain") is True if plain is None else plain,
        history_file=locations.history_file,
    )


def _ui_table(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            table = parse_toml(file.read(_MAX_BYTES).decode("utf-8-sig")).get("ui")
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
