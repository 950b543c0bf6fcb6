"""What a manifest of pixi asks for (pixi.sh, "Manifest reference"): pixi.toml, or the table `tool.pixi`."""

from collections.abc import Iterator, Mapping
from typing import Any

from panpan.capabilities.environment.project.conda_wishes import conda_wish
from panpan.capabilities.environment.project.toml_tables import table_of, word_in
from panpan.capabilities.environment.project.wish import OwnName, Said, Unclear, Wish


def pixi_wishes(pixi: Mapping[str, Any], source: str) -> Iterator[Said]:
    """Yield what the default environment has, of conda and of Python's index; what is for one platform alone is not.

    Args:
        pixi: The manifest.
        source: The file.
    """
    yield OwnName(word_in(table_of(pixi, "workspace") or table_of(pixi, "project"), "name"))
    for name, said in table_of(pixi, "dependencies").items():
        version = _version(said)
        yield Unclear(source, "it is no version", name) if version is None else conda_wish(f"{name} {version}", source)
    for name, said in table_of(pixi, "pypi-dependencies").items():
        is_own = isinstance(said, dict) and said.get("path") in (".", "./")
        version = _version(said) or ""
        if not is_own:
            yield Wish(f"{name}{'' if version == '*' else version}", source)


def _version(said: object) -> str | None:
    version = said.get("version", "*") if isinstance(said, dict) else said
    return version if isinstance(version, str) else None
