"""`panpan local`: Run a small model on this machine, without a key.

The rule: nothing is fetched or removed before its size was said and the user, or `--yes`, agreed.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from importlib import invalidate_caches
from typing import Self, TextIO

import anyio
import click
from anyio.lowlevel import checkpoint
from click.core import ParameterSource

from panpan.capabilities.local_model.setup import Progress, fetch_weights, free_bytes, usual_sources
from panpan.capabilities.local_model.weight_sources import SETUP_COMMAND, Source
from panpan.capabilities.local_model.weight_store import (
    RUNTIME,
    NoRuntimeError,
    WeightStore,
    embedded_store,
    megabytes,
    require_machine,
)
from panpan.cli_kit.commands import CommandGroup
from panpan.cli_kit.signals import Received, watch_signals
from panpan.config.run_settings import LOCAL_API_KEY_VARIABLE
from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.system.environment import how_to_install, install_command
from panpan.system.processes.foreground import run_in_foreground
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The embedded model, as the commands see it."""

    store: WeightStore
    sources: Sequence[Source]
    is_interactive: bool
    """True if somebody is there to be asked."""
    require_machine: Callable[[], None] = require_machine
    install: Callable[[Sequence[str]], int] = lambda command: anyio.run(run_in_foreground, command, os.environ)
    """Runs the command that installs the runtime; returns its exit code."""

    @classmethod
    def of(cls, ctx: click.Context) -> Self:
        """Return the model of the context, else the one on this machine."""
        return ctx.find_object(cls) or cls.here()

    @classmethod
    def here(cls) -> Self:
        """Return the model on this machine."""
        store = embedded_store(os.environ)
        is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
        return cls(store, usual_sources(store, os.environ), is_interactive)

    @property
    def machine_fault(self) -> str:
        """Reason why the model cannot run on this machine; empty if it can."""
        try:
            self.require_machine()
        except PanpanError as exc:
            return str(exc)
        return ""


_DOING = {"fetch": "fetching", "verify": "verifying"}
_BAR_CELLS = 20
_MIN_REDRAW_S = 0.1
_WARM_UP_S = 1.0
"""Seconds before a speed is shown; earlier it would be a guess."""


class ProgressLine:
    """A line on the terminal that is written over, or some lines in a file; `clock` never goes back."""

    def __init__(self, out: TextIO, *, is_terminal: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._is_terminal = is_terminal
        self._clock = clock
        self._stage = ""
        self._began = (0.0, 0)
        self._drawn_s = float("-inf")
        self._tenth = -1
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Show the progress if it has changed enough for a new line or a redraw."""
        now = self._clock()
        if progress.note:
            self._say(progress.note)
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._began = (now, progress.done_bytes)
            self._drawn_s = float("-inf")
            self._tenth = -1
        if self._is_terminal:
            if now - self._drawn_s >= _MIN_REDRAW_S or progress.done_bytes == progress.total_bytes:
                self._drawn_s = now
                self._draw(self._text(progress, now, has_bar=True))
        elif (tenth := progress.done_bytes * 10 // progress.total_bytes) > self._tenth:
            if progress.stage == "fetch":
                self._say(self._text(progress, now, has_bar=False))
            elif self._tenth < 0:
                self._say(f"verifying {megabytes(progress.total_bytes)}")  # takes seconds: one line is enough
            self._tenth = tenth

    def close(self) -> None:
        """End the line, so that what follows begins on one of its own."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _text(self, progress: Progress, now: float, *, has_bar: bool) -> str:
        share = progress.done_bytes / progress.total_bytes
        filled = int(share * _BAR_CELLS)
        bar = f"[{'#' * filled}{'.' * (_BAR_CELLS - filled)}] " if has_bar else ""
        size = f"{progress.done_bytes / 1e6:,.0f} of {megabytes(progress.total_bytes)}"
        return f"{_DOING[progress.stage]} {bar}{int(share * 100):3} %  {size}{self._speed(progress, now)}"

    def _speed(self, progress: Progress, now: float) -> str:
        began_s, began_bytes = self._began
        gained = progress.done_bytes - began_bytes
        if now - began_s < _WARM_UP_S or gained <= 0:
            return ""
        speed = gained / (now - began_s)
        left_s = round((progress.total_bytes - progress.done_bytes) / speed)
        return f"  {speed / 1e6:.1f} MB/s  {left_s // 60}:{left_s % 60:02} left"

    def _draw(self, text: str) -> None:
        self._write(f"\r{text.ljust(self._width)}")
        self._width = len(text)

    def _say(self, text: str) -> None:
        if self._width:
            self._write(f"\r{' ' * self._width}\r")
            self._width = 0
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        click.echo(text, self._out, nl=False)


_KEY = compile_late(r"[!-~]{8,}")
_POLL_S = 0.5
"""Seconds between two checks of `panpan local run` that its server still runs."""


@click.group("local", cls=CommandGroup)
def local() -> None:
    """Run a small model on this machine; once set up, it needs no key and no network."""


@local.command("setup")
@click.option("-y", "--yes", "auto_approve", is_flag=True, help="Do not ask before the download.")
@click.pass_context
def setup(ctx: click.Context, auto_approve: bool) -> int:
    """Install the package that runs the model (34 MB), and download its weights (1.1 GB)."""
    model = LocalModel.of(ctx)
    if not ensure_runtime(model, auto_approve):
        return 1
    if model.store.is_stamped:
        click.echo(f"{model.store.weights.name} is set up: {model.store.path}")
        return 0
    introduce(model)
    if not (model.store.is_ready or _agrees(model, auto_approve, "Fetch it?", f"{SETUP_COMMAND} --yes")):
        return 1
    exit_code = fetch(model)
    if exit_code is None:
        click.echo("Ready. Try:  panpan --model local")
    return exit_code or 0


@local.command("status")
@click.pass_context
def status(ctx: click.Context) -> int:
    """Show if the model is set up; exit with 0 if so."""
    from panpan.capabilities.local_model.server import running_server

    model = LocalModel.of(ctx)
    fault = model.machine_fault
    state, is_ready = _state_of(model.store)
    weights = model.store.weights
    running = running_server(model.store.folder)
    lines = {
        "model": weights.name,
        "runtime": fault or "ready",
        "weights": state,
        "served": "no; sessions start it themselves"
        if running is None
        else f"at {running.base_url}, by panpan local run",
        "file": str(model.store.path),
        "size": megabytes(weights.size_bytes),
        "licence": weights.licence,
        "origin": weights.origin,
    }
    for name, text in lines.items():
        click.echo(f"{name:8} {text}")
    return 0 if is_ready and not fault else 1


@local.command("remove")
@click.option("-y", "--yes", "auto_approve", is_flag=True, help="Do not ask.")
@click.pass_context
def remove(ctx: click.Context, auto_approve: bool) -> int:
    """Remove the weights and partial downloads."""
    model = LocalModel.of(ctx)
    if not model.store.stored_bytes:
        click.echo("There is nothing to remove.")
        return 0
    _require_not_served(model.store, "end that first")
    click.echo(f"{model.store.weights.name} takes {megabytes(model.store.stored_bytes)} in {model.store.folder}.")
    if not _agrees(model, auto_approve, "Remove it?", "panpan local remove --yes"):
        return 1
    click.echo(f"Freed {megabytes(model.store.remove())}.")
    return 0


@local.command("run")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port to listen on; a free one if not given."
)
@click.option(
    "--api-key",
    metavar="KEY",
    envvar=LOCAL_API_KEY_VARIABLE,
    show_envvar=True,
    help="Key that clients must send; a new one for each run if not given. Other users can see a command line, but not "
    "the variable.",
)
@click.pass_context
def run(ctx: click.Context, port: int, api_key: str | None) -> int:
    """Serve the model until Ctrl+C.

    The model stays loaded for panpan, and for other programs, which use chat completions with the key shown.
    """
    model = LocalModel.of(ctx)
    model.require_machine()
    if api_key is not None and not _KEY.fullmatch(api_key):
        # An empty key would admit everybody on this machine, and every page in a browser.
        reason = "a key has at least 8 letters, digits or signs, and no blanks"
        is_variable = ctx.get_parameter_source("api_key") is ParameterSource.ENVIRONMENT
        raise click.BadParameter(reason, param_hint=LOCAL_API_KEY_VARIABLE if is_variable else "--api-key")
    model.store.require_ready()
    _require_not_served(model.store, "use that, or end it")
    received = anyio.run(_until_signal, lambda: _serve(model, port, api_key))
    return 0 if received.is_interrupt else received.exit_code or 0  # Ctrl+C is the usual way to stop it


def ensure_runtime(model: LocalModel, auto_approve: bool) -> bool:
    """Install the package that runs the model where it is missing; return False if the user does not want that.

    Raises:
        ConfigError: The model cannot run on this machine, or the package cannot be installed.
    """
    try:
        model.require_machine()
    except NoRuntimeError:
        how = how_to_install(RUNTIME)
        click.echo(f"The embedded model needs the package xllamacpp, 34 MB:\n  {how}")
        if not _agrees(model, auto_approve, "Install it?", f"{SETUP_COMMAND} --yes"):
            return False
        try:
            code = model.install(install_command(RUNTIME))
        except OSError as error:
            raise ConfigError(f"the package cannot be installed ({error.strerror}); run: {how}") from error
        if code:
            raise ConfigError(f"the package could not be installed (exit code {code}); run: {how}") from None
        invalidate_caches()
        model.require_machine()
    return True


def fetch(model: LocalModel) -> int | None:
    """Fetch and verify the weights and show how far that is; return the exit code if a signal stopped it.

    Raises:
        FetchError: They cannot be had.
        ConfigError: The folder for them cannot be used.
    """
    received = anyio.run(_until_signal, lambda: _set_up(model))
    if received.exit_code is not None:
        kept = model.store.partial_bytes
        click.echo(f"Stopped. {megabytes(kept)} are kept; {SETUP_COMMAND} goes on there.", err=True)
    return received.exit_code


def introduce(model: LocalModel) -> None:
    """Print what is about to be fetched, with its source and destination."""
    store, weights = model.store, model.store.weights
    kept = f", {megabytes(store.partial_bytes)} of them are here already" if store.partial_bytes else ""
    lines = {
        "size": f"{megabytes(weights.size_bytes)}{kept}",
        "licence": weights.licence,
        "origin": weights.origin,
        "from": ", or else ".join(source.title for source in model.sources),
        "to": f"{store.path} ({megabytes(free_bytes(store.folder))} are free there)",
        "checked": f"SHA-256 {weights.sha256}, wherever it came from",
    }
    click.echo(f"The embedded model is {weights.name}.")
    for name, text in lines.items():
        click.echo(f"  {name:8} {text}")


def _agrees(model: LocalModel, auto_approve: bool, question: str, unasked: str) -> bool:
    """Return True if the user agrees, now or with `--yes` beforehand; raise `ConfigError` if nobody can be asked."""
    if not (auto_approve or model.is_interactive):
        raise ConfigError(f"there is no terminal to ask on; run: {unasked}")
    return auto_approve or click.confirm(question, default=True)


async def _until_signal(work: Callable[[], Awaitable[None]]) -> Received:
    """Do the work; a signal ends it in good order, and is returned."""
    received = Received()
    with unwrap_single_exception():
        async with anyio.create_task_group() as group:
            stop = group.cancel_scope.cancel
            group.start_soon(lambda: watch_signals(received, interrupt=lambda _: False, stop=stop))
            await checkpoint()  # signals are handled from here on
            await work()
            stop()
    return received


async def _set_up(model: LocalModel) -> None:
    line = ProgressLine(sys.stdout, is_terminal=sys.stdout.isatty())
    try:
        async with aclosing(fetch_weights(model.store, model.sources)) as steps:
            async for step in steps:
                line.show(step)
    finally:
        line.close()


async def _serve(model: LocalModel, port: int, api_key: str | None) -> None:
    from panpan.capabilities.local_model.server import MODEL_NAME, announce, start_server

    _say_if_verifying(model.store)
    path = await anyio.to_thread.run_sync(model.store.check, abandon_on_cancel=True)
    click.echo(f"Starting {model.store.weights.name} ...", err=True)
    async with start_server(path, port=port, api_key=api_key) as served:
        with announce(model.store.folder, served):
            click.echo(f"base URL  {served.base_url}\nAPI key   {served.api_key}\nmodel     {MODEL_NAME}")
            click.echo("panpan --model local uses it, too. Ctrl+C ends it.", err=True)
            while not served.has_ended():  # noqa: ASYNC110 - what ends is a process
                await anyio.sleep(_POLL_S)
    raise PanpanError("the server of the model ended by itself; start it again: panpan local run")


def _require_not_served(store: WeightStore, advice: str) -> None:
    from panpan.capabilities.local_model.server import running_server

    running = running_server(store.folder)
    if running is not None:
        raise ConfigError(f"panpan local run serves the model already, at {running.base_url}; {advice}")


def _say_if_verifying(store: WeightStore) -> None:
    if store.is_ready and not store.is_stamped:
        click.echo(f"verifying {megabytes(store.weights.size_bytes)} ...", err=True)  # takes seconds


def _state_of(store: WeightStore) -> tuple[str, bool]:
    """Return in words whether the weights are there, and whether they can be used."""
    if store.is_ready:
        _say_if_verifying(store)
        try:
            store.check()
        except PanpanError as exc:
            return str(exc), False
        return "ready, and verified", True
    if store.path.exists():
        return f"damaged; run: {SETUP_COMMAND}", False
    if store.partial_bytes:
        percent = store.partial_bytes * 100 // store.weights.size_bytes
        return f"partial, {percent} %; to go on, run: {SETUP_COMMAND}", False
    return f"not there; run: {SETUP_COMMAND}", False
