"""Links of a workspace, which nobody sees a program follow.

The rule: a link counts as read if what it leads to was read, or if that is a file which is not watched.
"""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from panpan.receipts.digests import Content

MOST_LINKS = 500
"""Most links that are followed for a receipt."""


def read_link(path: str) -> Content:
    """Return the digest of a link: that of the path in it, with the time of the file that it leads to."""
    try:
        target = os.readlink(path)  # noqa: PTH115 - hundreds of links
    except FileNotFoundError:
        return Content(how="gone")
    except (OSError, ValueError):
        return Content(how="left out")
    try:
        changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        changed_ns = 0
    return Content(sha256=sha256(os.fsencode(target)).hexdigest(), how="link", changed_ns=changed_ns)


def links_to(read: Collection[str], links: Collection[str], roots: Sequence[Path]) -> dict[str, Content]:
    """Return the links that count as read, by path.

    Args:
        read: Canonical paths of the files that were read.
        links: Paths of links of the workspace.
        roots: Folders of the workspace; canonical.
    """
    if not read or not links:
        return {}
    named = _with_folders(read)
    tops = tuple(f"{str(root).rstrip('/')}/" for root in roots)
    found: dict[str, Content] = {}
    for link in sorted(links)[:MOST_LINKS]:
        content = read_link(link)
        target = os.path.realpath(link)
        if content.how == "link" and target in named:
            found[link] = replace(content, changed_ns=0)  # the file is digested by itself
        elif content.how == "link" and not target.startswith(tops) and os.path.isfile(target):  # noqa: PTH113
            found[link] = content
    return found


def _with_folders(paths: Collection[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while path not in found and path:
            found.add(path)
            path = path.rpartition("/")[0]
    return found
