"""Campaigns that the user began, each in its folder.

The rule: what panpan writes into a campaign's folder is code as campaign.toml is. An attempt's record names flags, a
session and a home, and git works on the repository in `state/`. A folder from somebody else may bring such files, so
they count only if the user began the campaign there, or has said yes to them.
"""

from collections.abc import Mapping
from pathlib import Path

from panpan.batch.store.folder import CampaignFolder
from panpan.config.keys import shown
from panpan.config.locations import panpan_home
from panpan.config.project_files import ProjectFiles
from panpan.config.trust import Trusted, TrustStore
from panpan.errors import ConfigError


def note_begun(folder: CampaignFolder, campaign_id: str, users_home: Path) -> None:
    """Note that the campaign of this id in a folder is the user's.

    Args:
        folder: The campaign's folder.
        campaign_id: Id of the campaign.
        users_home: The panpan home of the user.

    Raises:
        ConfigError: It cannot be written.
    """
    TrustStore(users_home).keep(_files(folder, campaign_id), is_trusted=True)


def is_from_elsewhere(folder: CampaignFolder, users_home: Path) -> bool:
    """True if a campaign has begun in the folder, and the user did not begin it there.

    Raises:
        ConfigError: Its record is damaged.
    """
    frozen = folder.frozen_or_none()
    if frozen is None:
        return False
    return not isinstance(TrustStore(users_home).state(_files(folder, frozen.id)), Trusted)


def require_begun_here(folder: CampaignFolder, env: Mapping[str, str]) -> None:
    """Return if the campaign that has begun in the folder is the user's.

    Args:
        folder: The campaign's folder.
        env: The environment, for the panpan home of the user.

    Raises:
        ConfigError: It is not.
    """
    if is_from_elsewhere(folder, panpan_home(env, Path.cwd())):
        raise ConfigError(
            f"you did not begin the campaign in {shown(folder.path)}, so its state is not trusted; run it once on a "
            "terminal, which asks"
        )


def require_nothing_left(folder: CampaignFolder) -> None:
    """Return if the folder of a campaign that is about to begin holds no attempts and no results.

    Raises:
        ConfigError: It does.
    """
    names = [folder.results_file] if folder.results_file.exists() else []
    if folder.state.is_dir():
        names += [path for path in sorted(folder.state.iterdir()) if path.name not in (".gitignore", "lease")]
    if names:
        raise ConfigError(f"{shown(names[0])} is there, and not from this campaign; move it away")


def _files(folder: CampaignFolder, campaign_id: str) -> ProjectFiles:
    return ProjectFiles(folder.state / "campaign.json", {"id": campaign_id.encode()}, is_shown=True)
