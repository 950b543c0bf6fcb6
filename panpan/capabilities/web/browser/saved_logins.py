"""What log-ins of the user have left, one file a site: cookies and local storage, as Playwright keeps them.

The rule: it is as good as a password. It lies in files that only the user may read, is used for pages of its own site
and for no other, and is kept only because he logged in for that.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from panpan.errors import ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.private import make_private_folder
from panpan.system.files.read_file import read_regular_file

MAX_BYTES = 5_000_000
_SITE = re.compile(r"[a-z0-9_.:-]{1,253}")


def site_of(host: str) -> str:
    """Return what a log-in at `host` is kept under: the host itself, without `www.`.

    Not the domain above it: which of a host's domains are one owner's, `example.co.uk` but not `co.uk`, no name tells.
    """
    bare = host.removeprefix("www.")
    return bare if "." in bare else host


class SavedLogins:
    """The log-ins that are kept.

    Args:
        folder: Where they are; may not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sites(self) -> Sequence[str]:
        """Return the sites that there is a log-in for."""
        if not self._folder.is_dir():
            return ()
        return sorted(path.stem for path in self._folder.glob("*.json") if _SITE.fullmatch(path.stem))

    def storage_for(self, host: str) -> Mapping[str, Any] | None:
        """Return what is kept for the site of a host, the nearest one above it counting; None where nothing is.

        Raises:
            ToolError: It cannot be read.
        """
        labels = host.split(".")
        names = {".".join(labels[start:]): None for start in range(len(labels) - 1)} or {host: None}
        site = next((name for name in names if self._place(name).is_file()), None)
        if site is None:
            return None
        try:
            storage = json.loads(read_regular_file(self._place(site), max_bytes=MAX_BYTES, follow_symlinks=True))
            return _of_site(storage, site)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ToolError(
                f"the log-in that is kept for {site} is damaged; `panpan web logout {site}` forgets it"
            ) from None

    def keep(self, site: str, storage: Mapping[str, Any]) -> None:
        """Keep what belongs to a site, in place of what was kept for it.

        Raises:
            ToolError: It cannot be written, or is too large.
            ConfigError: The folder cannot be made.
        """
        data = json.dumps(_of_site(storage, site)).encode()
        if len(data) > MAX_BYTES:
            raise ToolError(f"the log-in to {site} left {len(data):,} bytes, of which {MAX_BYTES:,} can be kept")
        make_private_folder(self._folder)
        write_atomic(self._place(site), data, mode=0o600, follow_symlinks=True)

    def forget(self, site: str) -> bool:
        """Forget the log-in to a site; return whether there was one.

        Raises:
            ToolError: It is no site, or its file cannot be removed.
        """
        place = self._place(site)
        try:
            place.unlink()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise ToolError(f"the log-in to {site} is still there: {place} cannot be removed ({exc.strerror})") from exc
        return True

    def _place(self, site: str) -> Path:
        if not _SITE.fullmatch(site):
            raise ToolError(f"{site!r} is no site; name it like example.org")
        return self._folder / f"{site}.json"


def _of_site(storage: Mapping[str, Any], site: str) -> Mapping[str, Any]:
    """Return what of a storage belongs to the site; where it sent the user for his log-in is not its own."""
    cookies = [cookie for cookie in storage["cookies"] if _is_related(cookie["domain"].lstrip("."), site)]
    origins = [origin for origin in storage["origins"] if _is_at(urlsplit(origin["origin"]).hostname or "", site)]
    return {"cookies": cookies, "origins": origins}


def _is_related(domain: str, site: str) -> bool:
    """Whether the site sees a cookie of the domain, or has one below itself."""
    return _is_at(domain, site) or _is_at(site, domain)


def _is_at(host: str, site: str) -> bool:
    return host == site or host.endswith(f".{site}")
