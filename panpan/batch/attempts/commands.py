"""Commands that a campaign runs in an attempt's workspace: verify, setup, and the programs that make its environment.

The rule: they are code of the project or of the model. So they run in the sandbox, without keys, for a bounded time,
and nothing of them is left running. Each leaves a receipt.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType

import anyio
from anyio import CancelScope, to_thread
from anyio.lowlevel import checkpoint

from panpan.batch.attempts.kept_output import KeptOutput
from panpan.batch.store.folder import append_line, write_whole
from panpan.batch.store.records import Verdict
from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.errors import PanpanError, unwrap_single_exception
from panpan.permissions.folder_gate import sandbox_of
from panpan.receipts.environment_identity import packages_text
from panpan.receipts.receipt import FileDigest, Receipt
from panpan.receipts.recorder import CommandRecorder, Recording, StartedCommand
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path
from panpan.system.processes.limits import Limits, limit_command
from panpan.system.processes.process import Child, LineFolder, ProcessEnded, run_child
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox, FindSandbox, find_when_needed
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

MAX_OUTPUT_CHARS = 4_000
"""Most characters that a verdict keeps of the end of an output."""
_KEPT_BYTES = 32_000
_MOST_TOLD_CHARS = 1_500
_KILL_GRACE_S = 2.0


class UnfitError(PanpanError):
    """This machine cannot run the attempt; another one may."""


class CommandFailedError(PanpanError):
    """A command that the attempt needs did not go well, such as its setup."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The folder in which an attempt works, with what settings and environment say there."""

    workspace: Path
    """Top of its files, canonical; commands may change all of it."""
    folder: Path
    """The folder in it in which commands run."""
    receipts: Path
    """File of the receipts."""
    environ: Mapping[str, str]
    """The user's environment."""
    loaded: Loaded
    sandbox: CommandSandbox
    recorder: CommandRecorder
    links: Mapping[Path, str]
    """Places outside, each with its link in the workspace."""
    packages: Path | None
    """Folder for the lists of Python packages that commands had; None: they are not kept."""


@asynccontextmanager
async def ground_at(
    workspace: Path,
    folder: Path,
    receipts: Path,
    environ: Mapping[str, str],
    *,
    home: Path,
    is_boxed: bool,
    linked: Mapping[Path, str] = MappingProxyType({}),
    packages: Path | None = None,
    find: FindSandbox = find_when_needed,
) -> AsyncGenerator[Ground, None]:
    """Give the folder of an attempt's commands, with their sandbox.

    Args:
        workspace: Top of its files.
        folder: The folder in it in which commands run.
        receipts: File of the receipts.
        environ: The user's environment, which may name package indexes.
        home: The panpan home of the attempts, with the user's settings; no command changes it.
        is_boxed: False if the campaign says that its attempts run without a sandbox.
        linked: Canonical places outside, each with its link in the folder; receipts name what is read there.
        packages: Folder for the lists of Python packages that commands had; None: they are not kept.
        find: Looks which sandbox works.

    Raises:
        UnfitError: No sandbox works on this machine.
        ConfigError: The settings cannot be read.
    """
    own = {**environ, "PANPAN_HOME": str(home)}
    workspace, folder = canonical_path(workspace), canonical_path(folder)

    def load() -> tuple[Loaded, CommandSandbox]:
        locations = Locations.find(folder, own)
        # the network is what the campaign says, and not what the settings give the commands of sessions
        overrides = {"sandbox.mode": "on" if is_boxed else "off", "sandbox.network": False}
        loaded = load_settings(folder, own, overrides, locations)
        return loaded, sandbox_of(loaded, workspace, own, locations, find=find)

    loaded, sandbox = await to_thread.run_sync(load)
    links = {place: (folder / link).relative_to(workspace).as_posix() for place, link in linked.items()}
    watched = (workspace, *(place for place in linked if place.is_dir()))
    recorder = CommandRecorder(watched, receipts.with_name("reports"))
    try:
        if is_boxed and (trouble := await sandbox.find_trouble()):
            raise UnfitError(
                f'{trouble}; install bubblewrap, or add flags = ["--sandbox", "off"] to [attempt] in campaign.toml'
            )
        yield Ground(workspace, folder, receipts, environ, loaded, sandbox, recorder, links, packages)
    finally:
        with CancelScope(shield=True):
            await recorder.aclose()
            await sandbox.aclose()


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its rights."""

    name: str
    """Name in the receipts."""
    line: str | Sequence[str]
    """A line for `/bin/sh`, or a program with its arguments."""
    timeout_s: float
    has_network: bool = False
    hosts: Sequence[str] = ()
    """Hosts that it may reach without the network, as the setting `sandbox.domains` names them."""
    writable: Sequence[Path] = ()
    """Folders beside the workspace that it may change."""
    output: Path | None = None
    """File for all that it prints; None: only the end is kept, in the verdict."""

    @property
    def argv(self) -> Sequence[str]:
        return ["/bin/sh", "-c", self.line] if isinstance(self.line, str) else self.line


async def run_command(command: Command, ground: Ground, variables: Mapping[str, str]) -> Verdict:
    """Run a command and write its receipt.

    Args:
        command: The command.
        ground: Where it runs.
        variables: Variables that it gets beside those of the user's that `child_environment` passes.

    Raises:
        ToolError: It cannot be started.
        OutputError: The receipt cannot be written.
    """
    sandbox = ground.sandbox
    working = (await sandbox.choice()).sandbox if sandbox.is_on else None
    env = {**child_environment(ground.environ), **variables}
    recording = await ground.recorder.begin(_started(command, ground, env))
    bounds = _bounds(command, ground, recording.writable, can_grant=working is None or working.can_grant_domains)
    run = _Run(recording.feed)
    try:
        async with (
            _hosts_served(sandbox, is_needed=bool(bounds.hosts)),
            sandbox.boxed(command.argv, {**env, **recording.variables}, ground.folder, bounds) as start,
        ):
            argv = limit_command(start.argv, Limits())
            with nullcontext() if command.output is None else KeptOutput(command.output) as kept:
                child = await Child.start(
                    argv, cwd=ground.folder, env=start.env, has_stderr=False, pass_fds=start.pass_fds
                )
                await run.follow(child, command.timeout_s, kept)
    finally:
        with CancelScope(shield=True):
            receipt = await _receipt(recording, run, "off" if working is None else working.name, bounds, ground.links)
            if receipt is not None:
                await to_thread.run_sync(append_line, ground.receipts, receipt)
                await to_thread.run_sync(_keep_packages, ground, receipt.environment.packages_sha256)
    assert run.ended is not None, "it is the last thing that is yielded"
    assert receipt is not None, "the command has started"
    return Verdict(
        exit_code=run.ended.exit_code,
        seconds=receipt.seconds,
        timed_out=run.ended.timed_out,
        output=run.end_of_output,
    )


def _started(command: Command, ground: Ground, env: Mapping[str, str]) -> StartedCommand:
    line = command.line if isinstance(command.line, str) else ""
    return StartedCommand(argv=command.argv, line=line, cwd=ground.folder, environment=env, name=command.name)


async def _receipt(
    recording: Recording, run: "_Run", box: str, bounds: Bounds, links: Mapping[Path, str]
) -> Receipt | None:
    """End the recording; return the receipt, or None if the command did not start."""
    if not run.has_begun:
        recording.abandon()
        return None
    ended = run.ended
    receipt = await recording.end(
        ended.exit_code if ended else None,
        timed_out=ended is not None and ended.timed_out,
        box=box,
        network=bounds.has_network or tuple(bounds.hosts),
    )
    inputs = sorted((_by_link(one, links) for one in receipt.inputs), key=lambda one: one.path)
    return receipt.model_copy(update={"inputs": tuple(inputs)})


def _keep_packages(ground: Ground, digest: str) -> None:
    """Write the list of packages of a command, once for each environment of the campaign."""
    if ground.packages is None or not digest:
        return
    path = ground.packages / f"{digest}.txt"
    packages = None if path.exists() else ground.recorder.environments.packages(digest)
    if packages is not None:
        write_whole(path, packages_text(packages))


def _by_link(file: FileDigest, links: Mapping[Path, str]) -> FileDigest:
    """Return a file with the path that it has in the workspace, if it is read by a link there."""
    path = Path(file.path)
    for place, link in links.items():
        if path.is_relative_to(place):
            return file.model_copy(update={"path": Path(link, path.relative_to(place)).as_posix()})
    return file


async def require_command(command: Command, ground: Ground, variables: Mapping[str, str]) -> None:
    """Run a command that has to go well.

    Raises:
        CommandFailedError: It did not; the error has the end of its output.
        ToolError: It cannot be started.
        OutputError: The receipt cannot be written.
    """
    verdict = await run_command(command, ground, variables)
    if verdict.timed_out or verdict.exit_code:
        how = f"took longer than {command.timeout_s:g} s" if verdict.timed_out else f"exit code {verdict.exit_code}"
        raise CommandFailedError(f"{command.name} failed ({how}): {verdict.output.strip()[-_MOST_TOLD_CHARS:]}")


def _bounds(command: Command, ground: Ground, reports: Sequence[Path], *, can_grant: bool) -> Bounds:
    """Return the box of a command. A sandbox that knows no hosts gives the whole network to who needs some."""
    return Bounds(
        is_read_only=False,
        roots=(ground.workspace,),
        opened=frozenset(map(canonical_path, (*command.writable, *reports))),
        has_network=command.has_network or (bool(command.hosts) and not can_grant),
        hosts=command.hosts if can_grant else (),
    )


@asynccontextmanager
async def _hosts_served(sandbox: CommandSandbox, *, is_needed: bool) -> AsyncGenerator[None, None]:
    """Let commands of the block reach the hosts that they name."""
    with unwrap_single_exception():
        async with anyio.create_task_group() as serving:
            if is_needed:
                serving.start_soon(sandbox.serve)
                await checkpoint()  # it serves from its first step on
            yield
            serving.cancel_scope.cancel()


class _Run:
    """Output of a command, and its end."""

    def __init__(self, record: Callable[[bytes], None]) -> None:
        self.has_begun = False
        self.ended: ProcessEnded | None = None
        self.size_bytes = 0
        self._record = record
        self._folder = LineFolder()
        self._tail = bytearray()

    async def follow(self, child: Child, timeout_s: float, kept: KeptOutput | None) -> None:
        """Take the output of a process until its end, and end what it left."""
        self.has_begun = True
        try:
            async with aclosing(run_child(child, timeout_s=timeout_s, kill_grace_s=_KILL_GRACE_S)) as items:
                async for item in items:
                    if isinstance(item, bytes):
                        self._take(item, kept)
                    elif isinstance(item, ProcessEnded):
                        self.ended = item
        finally:
            await child.tree.end(_KILL_GRACE_S)  # what it left in the background
        self._keep(self._folder.finish(), kept)

    def _take(self, chunk: bytes, kept: KeptOutput | None) -> None:
        self.size_bytes += len(chunk)
        self._record(chunk)
        self._keep(self._folder.feed(chunk), kept)

    def _keep(self, data: bytes, kept: KeptOutput | None) -> None:
        self._tail += data
        del self._tail[:-_KEPT_BYTES]
        if kept is not None:
            kept.feed(data)

    @property
    def end_of_output(self) -> str:
        text = clean_for_terminal(self._tail.decode(errors="replace"))
        is_cut = self.size_bytes > _KEPT_BYTES or len(text) > MAX_OUTPUT_CHARS
        return f"[the end of {self.size_bytes:,} bytes]\n{text[-MAX_OUTPUT_CHARS:]}" if is_cut else text
