"""A whole check: read `claims.toml`, run its commands as a campaign, find the numbers and judge them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from anyio import to_thread
from pydantic import ValidationError

from panpan.batch.coordination.local_place import find_gpus
from panpan.batch.definition.campaign_rules import is_path_inside
from panpan.batch.store.folder import write_whole
from panpan.config.locations import panpan_home
from panpan.errors import ConfigError, OutputError, ToolError
from panpan.receipts.receipt import utc_now
from panpan.repro.checking.check_campaign import CheckCampaigns
from panpan.repro.checking.claim_runs import ClaimRuns
from panpan.repro.checking.data_files import check_data, identity_of, led_outside, not_whole
from panpan.repro.checking.judging import Obstacle, judge_all, obstacle_of
from panpan.repro.checking.needs import Here, elsewhere, this_machine
from panpan.repro.checking.results import CheckReport
from panpan.repro.checking.run_outputs import packages_of_runs
from panpan.repro.checking.source_files import SourceFiles, look_at_source
from panpan.repro.claims.claim import Claim, Claims, Data
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.claims.confirmations import Confirmations
from panpan.repro.claims.places import is_reproduction, source_of
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

RESULTS_FOLDER = "repro-results"
CHECK_FILE = "check.json"
_MAX_BYTES = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Choices of the user for one check."""

    seeds: int | None = None
    """Runs with different seeds for each claim whose command takes one; None: as many as its tolerance says, or one."""
    only: tuple[str, ...] = ()
    """Ids of the claims to check; all if empty."""
    on: str | None = None
    """Machines, as for `panpan batch run --on`; None: this one."""
    at_once: int | None = None
    """Runs at once on one machine; None: as campaigns do."""
    max_hours: float = 1.0
    """Longest estimate of a run that may begin, in hours."""
    confirms: Callable[[Claim], bool] | None = None
    """Says if a person has confirmed a claim; None: by the user's own confirmations, and no word of claims.toml."""
    allows_unconfirmed: bool = False
    """True if claims run that nobody has confirmed."""
    results: Path | None = None
    """Folder for the results; None: the reproduction's own, or `repro-results` beside claims.toml."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment, for the panpan home and for programs on PATH."""


def _silent(_: str) -> None: ...


async def check(folder: Path, options: CheckOptions, *, notify: Callable[[str], None] = _silent) -> CheckReport:
    """Check the claims of a folder, and write `check.json`. A check that was killed goes on where it was.

    The caller has made sure that the user trusts claims.toml, whose commands run. They run in the sandbox, on copies of
    the repository's files. A run that went well is not run again while the files, the data and its command are the
    same; without the folder of the results, everything is.

    Args:
        folder: Folder with claims.toml; canonical.
        options: Choices of the user.
        notify: Gets a line for people now and then.

    Raises:
        ConfigError: claims.toml is missing or wrong, or the check cannot begin; the error says what to do.
        OutputError: The results cannot be written.
    """
    began_at, env = utc_now(), options.env or os.environ
    claims = await to_thread.run_sync(_chosen, folder, options)
    places = await to_thread.run_sync(_places, folder, options)
    used = [*claims.data, *_needed_files(claims)]
    paths = [one.path for one in used if is_path_inside(one.path)]
    source = await look_at_source(places.source, places.results, paths)
    if claims.data:
        notify(f"takes checksums of the data: {', '.join(clean_line(one.path) for one in claims.data)}")
    cache = places.results / "data-digests.json"
    data = await to_thread.run_sync(check_data, used, source.folder, cache)
    stated = tuple(data[: len(claims.data)])
    outside = await to_thread.run_sync(lambda: [led_outside(one, source.folder) for one in data])
    for told in filter(None, [*outside, *map(not_whole, stated)]):
        notify(told)
    here = await _here(options.on, places.results, env)
    confirms = options.confirms or Confirmations(folder, panpan_home(env, folder)).confirms
    obstacles = await to_thread.run_sync(_obstacles, claims.claim, options, confirms, here, source)
    identity = await to_thread.run_sync(identity_of, data, source.folder)
    campaigns = CheckCampaigns(places.results, source, claims.environment, identity, env, options.on, notify)
    runnable = [claim for claim in claims.claim if claim.id not in obstacles]
    at_once = _fewer(options.at_once, here.most_at_once([claim.needs for claim in runnable]))
    runs = await ClaimRuns(runnable, campaigns, places.results, notify).make(options.seeds, at_once)
    report = CheckReport(
        title=claims.paper.title,
        source=str(places.source),
        commit=source.commit,
        is_changed=source.is_changed,
        began_at=began_at,
        ended_at=utc_now(),
        data=stated,
        judgements=judge_all(claims.claim, runs, obstacles=obstacles, data=stated),
        environments=await to_thread.run_sync(
            packages_of_runs, [run for those in runs.values() for run in those], campaigns.package_folders
        ),
    )
    await to_thread.run_sync(
        write_whole, places.results / CHECK_FILE, report.model_dump_json(indent=1).encode() + b"\n"
    )
    return report


def results_folder(folder: Path) -> Path:
    """Return the folder of the results of a check: the reproduction's own, or one in the repository.

    Args:
        folder: Folder with claims.toml; canonical.
    """
    return folder if is_reproduction(folder) else folder / RESULTS_FOLDER


def last_check(folder: Path) -> CheckReport | None:
    """Return the last check of a folder; None if there was none.

    Raises:
        ConfigError: Its file is damaged.
    """
    path = results_folder(folder) / CHECK_FILE
    if not path.exists():
        return None
    try:
        return CheckReport.model_validate_json(read_regular_file(path, max_bytes=_MAX_BYTES))
    except (ToolError, ValidationError) as error:
        said = clean_line(str(error).splitlines()[0])
        raise ConfigError(f"{path} is damaged ({said}); remove it, and run panpan repro check") from error


@dataclass(frozen=True, slots=True)
class _Places:
    source: Path
    results: Path


def _places(folder: Path, options: CheckOptions) -> _Places:
    """Return the repository and the folder of the results, which is made.

    Raises:
        ConfigError: The folder of the results would lie elsewhere.
        OutputError: It cannot be made.
    """
    source = source_of(folder)
    wanted = options.results or results_folder(folder)
    results = canonical_path(wanted)
    if options.results is None and not is_below(results, folder):
        raise ConfigError(f"{wanted} leads to {results}; remove the link")
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{results} cannot be made: {error.strerror}") from error
    if is_below(results, source) and not (results / ".gitignore").exists():
        write_whole(results / ".gitignore", b"*\n")  # so that the repository stays as it was
    return _Places(source, results)


def _chosen(folder: Path, options: CheckOptions) -> Claims:
    """Return claims.toml with those of its claims that the user wants.

    Raises:
        ConfigError: It is missing or wrong, or has no such claim.
    """
    claims = load_claims(folder).claims
    known = {one.id for one in claims.claim}
    if unknown := [one for one in options.only if one not in known]:
        raise ConfigError(f"claims.toml has no claim {clean_line(unknown[0])}; panpan repro show lists them")
    if not options.only:
        return claims
    return claims.model_copy(update={"claim": tuple(one for one in claims.claim if one.id in options.only)})


def _needed_files(claims: Claims) -> Sequence[Data]:
    """Return the files that claims need and that are not among their data."""
    paths = dict.fromkeys(path for one in claims.claim for path in one.needs.files)
    return [Data(path=path) for path in paths if path not in {one.path for one in claims.data}]


async def _here(on: str | None, results: Path, env: Mapping[str, str]) -> Here:
    if on is not None and not on.startswith("local:"):
        return elsewhere(results)
    gpus = await find_gpus(env=env)
    return this_machine(results, env.get("PATH", ""), gpus=len(gpus))


def _obstacles(
    claims: Sequence[Claim],
    options: CheckOptions,
    confirms: Callable[[Claim], bool],
    here: Here,
    source: SourceFiles,
) -> Mapping[str, Obstacle]:
    """Return the reasons that claims are not run, by their ids."""
    found: dict[str, Obstacle] = {}
    for claim in claims:
        obstacle = obstacle_of(claim, is_confirmed=options.allows_unconfirmed or confirms(claim))
        if obstacle is None and (lack := here.lacks(claim.needs, source.folder, max_hours=options.max_hours)):
            obstacle = Obstacle(lack)
        if obstacle is not None:
            found[claim.id] = obstacle
    return found


def _fewer(one: int | None, other: int | None) -> int | None:
    given = [number for number in (one, other) if number is not None]
    return min(given, default=None)
