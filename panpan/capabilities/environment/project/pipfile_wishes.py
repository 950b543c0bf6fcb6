"""What a Pipfile of pipenv asks for (pipenv.pypa.io, "Pipfile & Pipfile.lock")."""

from collections.abc import Iterator, Mapping
from typing import Any

from panpan.capabilities.environment.project.poetry_versions import poetry_requirements
from panpan.capabilities.environment.project.toml_tables import table_of, word_in
from panpan.capabilities.environment.project.wish import PythonWish, Said, Unclear, Wish

_OWN = (".", "./")


def pipfile_wishes(pipfile: Mapping[str, Any], source: str) -> Iterator[Said]:
    """Yield what the manifest says; its categories beside the usual one are groups, which nobody has to install.

    Args:
        pipfile: The manifest.
        source: The file.
    """
    requires = table_of(pipfile, "requires")
    if whole := word_in(requires, "python_full_version"):
        yield PythonWish(f"=={whole}", source)
    elif minor := word_in(requires, "python_version"):
        yield PythonWish(f"=={minor}.*", source)
    for table, packages in pipfile.items():
        if table not in _NO_CATEGORIES and isinstance(packages, dict):
            yield from _packages(packages, source, "" if table == "packages" else f"group {table}")


_NO_CATEGORIES = frozenset(("requires", "pipenv", "scripts", "source"))


def _packages(packages: Mapping[str, Any], source: str, group: str) -> Iterator[Said]:
    for name, said in packages.items():
        if isinstance(said, dict) and said.get("path") in _OWN:
            continue
        for text in poetry_requirements(name, said):
            if text is not None:
                yield Wish(text, source, group=group)
            elif not group:
                yield Unclear(source, "these versions are not understood", f"{name} {said}")
