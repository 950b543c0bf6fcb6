"""Tells if what a receipt shows still holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from anyio import to_thread

from panpan.receipts.digests import FileDigests, path_of, read_link
from panpan.receipts.environment_identity import packages_digest
from panpan.receipts.receipt import EnvironmentIdentity, FileDigest, Receipt
from panpan.receipts.workspace_files import read_all_files
from panpan.types.dataclass import dataclass

PACKAGES = "installed packages"


@dataclass(frozen=True, slots=True)
class Freshness:
    """State of the inputs of a receipt."""

    state: Literal["fresh", "stale", "unknown"]
    """fresh: all inputs are as they were; stale: one has changed; unknown: they are not all known."""
    changed: Sequence[str] = ()
    """Paths of inputs that have changed or are gone, as the receipt names them; "." if it is not known which of all;
    `PACKAGES` if others are installed now."""


async def freshness_of(
    receipt: Receipt, roots: Sequence[Path], digests: FileDigests, hidden: Sequence[Path] = ()
) -> Freshness:
    """Return if the inputs of a receipt are as they were. Only files that may have changed are read.

    Args:
        receipt: The receipt.
        roots: Folders of the workspace, the main one first; canonical.
        digests: Digests of files; the same for all receipts, so that no file is read twice.
        hidden: Folders that no receipt names.
    """
    changed = await to_thread.run_sync(_changed, receipt, roots[0], digests)
    if changed:
        return Freshness("stale", changed)
    if receipt.inputs_are == "all":
        found = await read_all_files(roots, hidden, digests) if receipt.all_sha256 else None
        if found is None:
            return Freshness("unknown")
        return Freshness("fresh") if found.sha256 == receipt.all_sha256 else Freshness("stale", ["."])
    is_known = receipt.inputs_are == "opened" and not receipt.more_inputs
    return Freshness("fresh" if is_known and all(one.how != "left out" for one in receipt.inputs) else "unknown")


def _changed(receipt: Receipt, top: Path, digests: FileDigests) -> Sequence[str]:
    packages = [PACKAGES] if _has_other_packages(receipt.environment) else []
    return [*(one.path for one in receipt.inputs if _is_changed(one, top, digests)), *packages]


def _has_other_packages(then: EnvironmentIdentity) -> bool:
    """Return True if packages came, went or changed in the environment of a command."""
    return bool(then.prefix and then.packages_sha256) and packages_digest(then.prefix) != then.packages_sha256


def _is_changed(then: FileDigest, top: Path, digests: FileDigests) -> bool:
    if then.how == "changed":
        return True
    path = path_of(then, top)
    now = read_link(str(path)) if then.how == "link" else digests.read_again(path, then.how)
    if then.how == "left out":
        return now.how == "gone"
    if then.how in ("parts", "link") and then.changed_ns and then.changed_ns != now.changed_ns:
        return True
    return (now.how, now.size, now.sha256) != (then.how, then.size, then.sha256)
