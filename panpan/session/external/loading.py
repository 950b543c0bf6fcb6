"""Capabilities from outside panpan: of installed packages, and of files in `capabilities/` folders.

The rule: nothing of them is imported before the user's own settings name it. An error in one costs that one, and is
told with its file and line.
"""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING

from panpan.config.settings import Settings
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.config.locations import Locations
    from panpan.config.trust import ProjectTrust
    from panpan.session.capability import Capability


GROUP = "panpan.capabilities"
"""Group of the entry points with which packages tell of their capabilities."""

_SOURCE = "__panpan_source__"
"""Attribute of the module of a file: its path and content as they ran."""

FOLDER = "capabilities"
"""Folder of files with capabilities, in the panpan home and in `.panpan` of a project."""


@dataclass(frozen=True, slots=True)
class ExternalCapability:
    """A capability that is there. It is imported by `load`, and by nothing else."""

    name: str
    """Its name in the settings: that of the entry point, or of the file without `.py`."""
    place: str
    """Origin for people: a package and its version, or a file."""
    load: "Callable[[], type[Capability]]"


def external_capabilities(locations: "Locations", trust: "ProjectTrust") -> Mapping[str, ExternalCapability]:
    """Return the capabilities that packages and folders have, by name. A nearer one hides a farther one of its name.

    Files of the project are taken from what `trust` believes, and not from the disk again.
    """
    found = {one.name: one for one in map(_of_entry_point, entry_points(group=GROUP))}
    own = locations.home / FOLDER
    for file in sorted(own.glob("*.py")) if own.is_dir() else ():
        found |= _of_file(file, file.read_bytes)
    folder = PurePosixPath(".panpan", FOLDER)
    for name, content in sorted(trust.believed.items()):
        if PurePosixPath(name).parent == folder and name.endswith(".py"):
            found |= _of_file(locations.project_root / name, partial(bytes, content))
    return found


def is_named(name: str, settings: Settings) -> bool:
    """Return True if the settings switch a capability on: with `true`, or with a table that does not say otherwise."""
    value = settings.capabilities.get(name, False)
    return value if isinstance(value, bool) else value.get("enabled", True) is True


def named_capabilities(
    settings: Settings,
    there: Mapping[str, ExternalCapability],
    own: Sequence[str],
    warn: Callable[[str], None],
) -> "Sequence[type[Capability]]":
    """Return the capabilities that the settings name, imported, in the order of the settings.

    One that cannot be used is warned of, or raises ConfigError if it is required. Those of `own` cannot be taken.
    """
    loaded = []
    for name in settings.capabilities:
        if not is_named(name, settings):
            continue
        try:
            if name in own:
                raise ConfigError(f"{name} is the name of a capability of panpan's own")
            if name not in there:
                raise ConfigError(f"there is no capability {name}; `panpan capabilities list` lists them")
            loaded.append(there[name].load())
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, ConfigError) else failure(name, error)
            if is_required(name, settings):
                raise ConfigError(f"{why}; [capabilities.{name}] says that it is required") from error
            warn(f"{why}; the session goes on without it")
    return loaded


def is_required(name: str, settings: Settings) -> bool:
    """Return True if no session may open without a capability, as one that guards something."""
    value = settings.capabilities.get(name)
    return isinstance(value, Mapping) and value.get("required") is True


def failure(name: str, error: BaseException) -> str:
    """Describe an error in a capability: its kind, its text, and the file and line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f" ({error.filename}:{error.lineno})"
    return clean_line(f"the capability {name} failed: {type(error).__name__}: {error}{place}")


def _of_entry_point(point: EntryPoint) -> ExternalCapability:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.module

    def load() -> "type[Capability]":
        return _checked(point.load(), point.name)

    return ExternalCapability(point.name, package, load)


def _of_file(file: Path, read: Callable[[], bytes]) -> Mapping[str, ExternalCapability]:
    """Return the capability of a file by its name; files whose name begins with `_` have none."""

    def load() -> "type[Capability]":
        from panpan.session.capability import Capability

        module = _module_of(file, read())
        kinds = [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, Capability) and kind.__module__ == module.__name__
        ]
        if len(kinds) != 1:
            raise ConfigError(f"{file} has {len(kinds)} capabilities; a file has one class that extends Capability")
        return _checked(kinds[0], file.stem)

    return {} if file.name.startswith("_") else {file.stem: ExternalCapability(file.stem, str(file), load)}


def _module_of(file: Path, content: bytes) -> ModuleType:
    """Return a file as a module, which runs once as long as its content stays the same.

    It is compiled and not imported: an import would write and read bytecode beside the file, which nobody was shown.
    """
    name, source = f"panpan_capability_{file.stem}", (str(file), content)
    known = sys.modules.get(name)
    if known is not None and known.__dict__.get(_SOURCE) == source:
        return known
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # so that `providers` can name a class of the file
    try:
        exec(compile(content, str(file), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    module.__dict__[_SOURCE] = source
    return module


def _checked(kind: object, name: str) -> "type[Capability]":
    from panpan.session.capability import Capability

    if not (isinstance(kind, type) and issubclass(kind, Capability)):
        raise ConfigError(f"the capability {name} is not a class that extends Capability")
    if getattr(kind, "name", None) != name:
        raise ConfigError(f"the capability {name} calls itself {getattr(kind, 'name', None)!r}; both names must match")
    return kind
