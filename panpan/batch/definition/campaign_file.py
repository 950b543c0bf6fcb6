"""Reading `campaign.toml` with the files that it names. Errors name the line, the key and the correction."""

from collections.abc import Mapping
from pathlib import Path

from pydantic_core import ErrorDetails

from panpan.batch.definition.campaign import Campaign
from panpan.batch.definition.campaign_rules import problems_of
from panpan.batch.definition.written_tasks import read_jsonl
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.wording import batch_command
from panpan.config.checked_toml import TomlText
from panpan.config.faults import fault, kind_of
from panpan.config.keys import KeyPath, dotted, shown
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
    text = TomlText.decoded(_NAME, data)
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


def _checked(file: TomlText) -> Campaign:
    campaign = file.checked(Campaign, _sentence)
    for path, problem in problems_of(campaign):
        raise ConfigError(f"{file.place(path)}: {problem}")
    return campaign


def _source(campaign: Campaign, folder: Path, file: TomlText) -> Path:
    place = file.place(("workspace", "source"))
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


def _sentence(path: KeyPath, key: str, error: ErrorDetails) -> str:
    if path[0] == "axes" and len(path) > 1:
        return _fault_of_axis(path, error)
    if path[-1] == "verify" and error["type"] == "model_type":
        return f"{key} is {kind_of(error['input'])}; write a command in quotes"
    return ""


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
