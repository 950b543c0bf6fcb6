"""Reading `campaign.toml` with the files that it names. Errors name the line, the key and the correction."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from panpan.batch.definition.campaign import Campaign
from panpan.batch.definition.campaign_rules import problems_of
from panpan.batch.definition.written_tasks import read_jsonl
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.wording import batch_command
from panpan.config.faults import fault, first_of, kind_of, parse_text, suggestion
from panpan.config.keys import KeyPath, dotted, item_lines, key_lines, shown
from panpan.config.locations import panpan_home
from panpan.config.project_files import ProjectFiles
from panpan.config.trust import wide_root
from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

_NAME = "campaign.toml"
_MAX_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class LoadedCampaign:
    """A campaign as its files say, checked. Nobody has said yet that it may run."""

    folder: CampaignFolder
    campaign: Campaign
    files: ProjectFiles
    """The files that the user has to trust: campaign.toml and those of `[tasks] jsonl`, as they were read."""
    source: Path
    """Canonical folder of the project."""
    home: Path
    """The panpan home of the attempts."""
    users_home: Path
    """The panpan home of the user, which holds their trust."""

    @property
    def jsonl(self) -> Mapping[str, bytes]:
        """Content of the files of `[tasks] jsonl`, by name."""
        return {name: data for name, data in self.files.content.items() if name != _NAME}


def load_campaign(path: Path, env: Mapping[str, str]) -> LoadedCampaign:
    """Read and check a campaign; nothing of it runs.

    Args:
        path: The folder of the campaign.
        env: The environment, for the panpan home.

    Raises:
        ConfigError: The folder or a file is missing or wrong; the error says what to do.
    """
    users_home = panpan_home(env, Path.cwd())
    folder = CampaignFolder(_usable_folder(path, users_home))
    data = _content(folder)
    text = _decoded(data)
    campaign = _checked(text)
    files = {_NAME: data, **read_jsonl(campaign.tasks.jsonl, folder.path)}
    return LoadedCampaign(
        folder=folder,
        campaign=campaign,
        files=ProjectFiles(folder.campaign_file, files, is_shown=True),
        source=_source(campaign, folder.path, text),
        home=users_home if campaign.home is None else _home(campaign.home, folder.path, env),
        users_home=users_home,
    )


def _usable_folder(path: Path, users_home: Path) -> Path:
    try:
        folder = canonical_path(path)
        str(folder).encode("utf-8")
    except ToolError as error:
        raise ConfigError(shown(error)) from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"the name of {shown(path)} is not UTF-8; rename the folder") from error
    if not folder.exists():
        raise ConfigError(f"there is no folder {shown(path)}; make it with {batch_command('new', path)}")
    if not folder.is_dir():
        raise ConfigError(f"{shown(path)} is no folder; name the folder of the campaign")
    if wide := wide_root(folder):
        raise ConfigError(f"{shown(folder)} is {wide}; make a folder for the campaign alone")
    if is_below(folder, users_home):
        raise ConfigError(f"{shown(folder)} is in the panpan home, which no attempt may use; make a folder elsewhere")
    return folder


def _content(folder: CampaignFolder) -> bytes:
    path = folder.campaign_file
    if not path.is_symlink() and not path.exists():
        new = batch_command("new", folder.path)
        raise ConfigError(f"{shown(folder.path)} has no campaign.toml; {new} writes an example")
    try:
        return read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True)
    except ToolError as error:
        raise ConfigError(f"campaign.toml cannot be read: {shown(error)}; change or remove the file") from error


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{_NAME}:{line}: is not UTF-8; save the file as UTF-8") from error


def _checked(text: str) -> Campaign:
    values = parse_text(text, _NAME)
    try:
        campaign = Campaign.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_sentence(text, error.errors(include_url=False))) from error
    for path, problem in problems_of(campaign):
        raise ConfigError(f"{_place(text, path)}: {problem}")
    return campaign


def _source(campaign: Campaign, folder: Path, text: str) -> Path:
    place = _place(text, ("workspace", "source"))
    try:
        source = canonical_path(folder / campaign.workspace.source)
    except ToolError as error:
        raise ConfigError(f"{place}: workspace.source: {shown(error)}") from error
    if not source.is_dir():
        raise ConfigError(f"{place}: workspace.source: {shown(source)} is no folder; correct the path")
    if campaign.workspace.isolation == "copy" and (wide := wide_root(source)):
        raise ConfigError(f"{place}: workspace.source is {wide}, too much to copy; name the folder of the project")
    return source


def _home(home: Path, folder: Path, env: Mapping[str, str]) -> Path:
    return panpan_home({**env, "PANPAN_HOME": str(home)}, folder)


def _place(text: str, path: KeyPath, task: int | None = None) -> str:
    """Return `campaign.toml:LINE` of a key, or of the nearest table above it."""
    try:
        lines = key_lines(text)
        tasks = item_lines(text).get(("task",), ())
    except RecursionError:  # nested too deeply for the lines alone
        return _NAME
    if task is not None and task < len(tasks):
        return f"{_NAME}:{tasks[task]}"
    found = next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)
    return _NAME if found is None else f"{_NAME}:{found}"


def _sentence(text: str, errors: list[ErrorDetails]) -> str:
    first = first_of(errors)
    location = first["loc"]
    path = tuple(part for part in location if isinstance(part, str) and part != "[key]")
    task = location[1] if location[0] == "task" and len(location) > 1 and isinstance(location[1], int) else None
    if path[0] == "axes" and len(path) > 1:
        return f"{_place(text, path[:2])}: {_fault_of_axis(path, first)}"
    place = _place(text, path, task)
    key = dotted(path) if task is None else ": ".join(filter(None, (f"task {task + 1}", dotted(path[1:]))))
    if first["type"] == "extra_forbidden":
        return f"{place}: there is no key {dotted(path)}{suggestion(path, tuple(_keys_of(Campaign, (), path)))}"
    if path[-1] == "verify" and first["type"] == "model_type":
        return f"{place}: {key} is {kind_of(first['input'])}; write a command in quotes"
    return f"{place}: {key} {fault(first, is_item=isinstance(location[-1], int) and task != location[-1])}"


def _fault_of_axis(path: KeyPath, error: ErrorDetails) -> str:
    key = dotted(path[:2])
    if "[key]" in error["loc"]:
        return f"{key} is no name; write letters, digits and _, at most 64, and no digit first"
    if error["type"] == "too_short":
        return f"{key} is empty; write a value, or remove it"
    number = next((part for part in error["loc"] if isinstance(part, int)), None)
    if number is None:
        return f"{key} {fault(error, is_item=False)}"
    wrong = "not finite" if isinstance(error["input"], float) else kind_of(error["input"])
    return f"{key} has an item {number + 1} that is {wrong}; write texts, numbers, true or false"


def _keys_of(model: type[BaseModel], above: KeyPath, wanted: KeyPath) -> Iterator[KeyPath]:
    """Yield all keys that a table and those in it may have; tables of free names have those of `wanted`."""
    for name, field in model.model_fields.items():
        path = (*above, name)
        yield path
        if get_origin(field.annotation) in _MAPPINGS and wanted[: len(path)] == path and len(wanted) > len(path):
            path = wanted[: len(path) + 1]
        for table in _tables_in(field.annotation):
            yield from _keys_of(table, path, wanted)


_MAPPINGS = (dict, get_origin(Mapping[str, str]))


def _tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _tables_in(part)
