"""Output styles, and where they come from: panpan, files of the user and of a trusted project, a path, or JSON.

The rule: a style says how the model speaks. It gives no rights, and an untrusted project has none.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from panpan.config.places import MAX_BYTES, BroughtFile, Places
from panpan.errors import ConfigError, ToolError
from panpan.system.files.read_file import read_users_file
from panpan.system.text.front_matter import FrontMatterError, parts_of_file
from panpan.types.dataclass import dataclass
from panpan.types.events import known_name

MAX_CHARS = 50_000
"""Most characters of the text of a style."""
DEFAULT = "Default"
_INLINE = "inline"


@dataclass(frozen=True, slots=True)
class OutputStyle:
    """A way for the model to speak."""

    name: str
    description: str = ""
    prompt: str = ""
    """Text for the model; empty for panpan's usual way."""
    keeps_coding_instructions: bool = True
    """False if it takes the place of what the system prompt says about work and answers."""
    place: str = ""
    """Its file; empty for one of panpan's own."""


PLAIN = OutputStyle(DEFAULT, "Short and plain, as panpan speaks by itself")


class OutputStyles:
    """The styles of a session, by their names.

    Args:
        places: Where their files are.
        cwd: Folder in which relative paths start.
    """

    def __init__(self, places: Places, cwd: Path) -> None:
        self._cwd = cwd
        self.problems: list[str] = []
        """Files that hold no style that can be used, each with the reason."""
        found = [PLAIN, *(_own(file) for file in sorted((Path(__file__).parent / "own").glob("*.md")))]
        self.all: Mapping[str, OutputStyle] = {style.name: style for style in found}
        """All styles, of one name the strongest."""
        for file in places.files(("output-styles",), self.problems):
            try:
                style = read_style(file)
            except ConfigError as error:
                self.problems.append(str(error))
            else:
                weaker = known_name(style.name, self.all.keys())
                self.all = {**{name: one for name, one in self.all.items() if name != weaker}, style.name: style}

    def get(self, wanted: str) -> OutputStyle:
        """Return the style of a name, in a file, or in JSON.

        Raises:
            ConfigError: There is none, or it cannot be read.
        """
        wanted = wanted.strip()
        if wanted.startswith("{"):
            return _of_json(wanted)
        if is_path(wanted):
            return self._of_path(wanted)
        found = self.all.get(known_name(wanted, self.all.keys()))
        if found is None:
            also = "".join(f"; not used: {problem}" for problem in self.problems[:3])
            raise ConfigError(f"there is no output style {wanted}; there are {', '.join(self.all)}{also}")
        return found

    def _of_path(self, written: str) -> OutputStyle:
        try:
            path = self._cwd / Path(written).expanduser()
            data = read_users_file(str(path), max_bytes=MAX_BYTES)
            return read_style(BroughtFile("output-styles", str(path), data, is_users=True))
        except (ToolError, RuntimeError, ValueError) as error:
            raise ConfigError(f"the output style {written} cannot be read: {error}") from error


def is_path(wanted: str) -> bool:
    """Return whether a style is meant by the path of its file, and not by its name or in JSON."""
    return not wanted.startswith("{") and ("/" in wanted or wanted.endswith(".md"))


def _own(file: Path) -> OutputStyle:
    return replace(read_style(BroughtFile("output-styles", file.name, file.read_bytes(), is_users=True)), place="")


def read_style(file: BroughtFile) -> OutputStyle:
    """Return the style in a Markdown file.

    Raises:
        ConfigError: It holds none.
    """
    stem = Path(file.name).stem
    try:
        parts = parts_of_file(file.data)
    except FrontMatterError as error:
        raise ConfigError(f"{file.name}:{error.line}: {error}") from None
    head = {key: entry.value.strip() for key, entry in parts.head.items() if isinstance(entry.value, str)}
    keeps = head.get("keep-coding-instructions", "false").casefold() in ("true", "yes", "on")
    name = " ".join(head.get("name", "").split()) or stem
    name = name if file.plugin is None else f"{file.plugin.name}:{name}"
    return _checked(OutputStyle(name, head.get("description", ""), parts.body, keeps, file.name), file.name)


def _of_json(text: str) -> OutputStyle:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the output style is no JSON: {error}") from error
    match given:
        case {"prompt": str(prompt)}:
            name, description = given.get("name", _INLINE), given.get("description", "")
            keeps = given.get("isCodingRelated", True)
            if isinstance(name, str) and isinstance(description, str) and isinstance(keeps, bool):
                name = " ".join(name.split()) or _INLINE
                return _checked(OutputStyle(name, description, prompt, keeps), "the output style")
    raise ConfigError('the output style is no object such as {"prompt": "Be direct."}; name, description and '
                      "isCodingRelated may stand beside that")  # fmt: skip


def _checked(style: OutputStyle, place: str) -> OutputStyle:
    if not style.prompt.strip():
        raise ConfigError(f"{place}: it has no text")
    if len(style.prompt) > MAX_CHARS:
        raise ConfigError(f"{place}: it has {len(style.prompt):,} characters; {MAX_CHARS:,} are allowed")
    return style
