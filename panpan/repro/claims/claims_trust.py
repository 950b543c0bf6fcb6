"""Trust in a `claims.toml`: it is code, for it names commands that run.

Trust in the claims is no trust in a project, even in the same folder: its root is the file and no folder.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from anyio import to_thread

from panpan.config.file_trust import Ask, TrustQuestion, lines_about, problem_of, trust_text
from panpan.config.keys import shown
from panpan.config.trust import Trusted, TrustStore
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.claims_file import NAME, ClaimsFile
from panpan.repro.claims.places import source_of
from panpan.system.files.canonical import is_below


def keep_trust(file: ClaimsFile, home: Path, *, is_trusted: bool) -> None:
    """Keep the user's answer about a claims.toml as it was read.

    Args:
        file: The file.
        home: The panpan home.
        is_trusted: The answer.

    Raises:
        ConfigError: It cannot be written.
    """
    TrustStore(home).keep(file.files, is_trusted=is_trusted)


async def require_trust(
    file: ClaimsFile,
    home: Path,
    *,
    trusts: bool = False,
    ask: Ask | None = None,
    has_seen: Callable[[Claim], bool] = lambda _: False,
) -> None:
    """Return if the user trusts a claims.toml as it was read, asking them if that is possible.

    Args:
        file: The file.
        home: The panpan home.
        trusts: True if a flag trusts it, for this run.
        ask: Asks the user; None without a terminal.
        has_seen: True if the user has confirmed a claim with its command, so that it needs no question.

    Raises:
        ConfigError: It is not trusted, or the answer cannot be kept; the error says what to do.
    """
    runs = list(_runs(file, has_seen))
    if trusts or not runs:
        return
    state = await to_thread.run_sync(TrustStore(home).state, file.files)
    if isinstance(state, Trusted):
        return
    question = TrustQuestion(
        place=shown(file.path),
        what="these claims",
        problem=problem_of(NAME, state),
        text=trust_text(lines_about(shown(file.path), state), runs),
        keep=lambda answer: keep_trust(file, home, is_trusted=answer),
    )
    await question.require_yes(ask)


def _runs(file: ClaimsFile, has_seen: Callable[[Claim], bool]) -> Iterator[str]:
    """Yield what runs and the user has not seen yet, each command once."""
    claims, folder = file.claims, file.path.parent
    runnable = [claim for claim in claims.claim if claim.command]
    if not runnable:
        return
    if claims.environment.kind != "none":
        yield f"{claims.environment.kind}: makes the environment of the project, with the network"
    if claims.environment.setup is not None:
        yield f"setup, with the network: {claims.environment.setup}"
    unseen = {(one.command, one.needs.network) for one in runnable if not has_seen(one)}
    for command, network in sorted(unseen):
        yield f"command{' with the network' if network else ''}, in the sandbox: {command}"
    if unseen and not is_below(source := source_of(folder), folder):  # the link may have come with the folder
        yield f"on copies of the files of {source}"
