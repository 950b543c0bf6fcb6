"""Files of requirements beside the usual one, such as `dev-requirements.txt` or those in a folder `requirements`."""

import re
from collections.abc import Iterator
from dataclasses import replace

from panpan.capabilities.environment.project.project_files import ProjectFiles
from panpan.capabilities.environment.project.requirement_wishes import requirement_wishes
from panpan.capabilities.environment.project.wish import Said, Unclear, Wish

MAX_FILES = 20
_NAMES = {"": re.compile(r"[\w.-]*requirements?[\w.-]*\.txt"), "requirements": re.compile(r"[\w.-]+\.txt")}
"""By the folder that they lie in."""


def optional_requirements(files: ProjectFiles, *, are_all: bool) -> Iterator[Said]:
    """Yield what is asked for in files that no manifest names, which nobody has to install.

    Args:
        files: The project, with all manifests read.
        are_all: Whether nothing else says what the project needs. Then a single one is the project's, and of several
            nobody knows which one is meant.
    """
    names = [name for name in _names_in(files) if not files.was_read(name)][:MAX_FILES]
    for name in names:
        if are_all and len(names) == 1:
            yield from requirement_wishes(files, name)
            continue
        if are_all:
            yield Unclear(name, f"it is one of {len(names)} such files, and nothing says which is meant")
        said = requirement_wishes(files, name)
        yield from (replace(one, group=name) for one in said if isinstance(one, Wish))


def _names_in(files: ProjectFiles) -> Iterator[str]:
    for folder, usual in _NAMES.items():
        for name in files.names(folder):
            if usual.fullmatch(name):
                yield f"{folder}/{name}".lstrip("/")
