"""`panpan acp`: be the agent of an editor."""

import os
import sys
from importlib.util import find_spec

import click

from panpan.cli_kit.commands import CommandOfSessions, run_panpan
from panpan.cli_kit.options import server_options
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import printable

PACKAGE = "agent-client-protocol>=0.12,<0.13"
"""The library with the protocol's messages, as in pyproject.toml."""


@click.command("acp", cls=CommandOfSessions)
@click.option("--login", "logs_in", is_flag=True, help="Give panpan an API key on this terminal, and exit.")
@click.option(
    "--protocol",
    type=click.Choice(["1", "2"]),
    default="1",
    show_default=True,
    help="Newest version of the protocol to offer; 2 is a draft that may change.",
)
@click.pass_context
def command(ctx: click.Context, logs_in: bool, protocol: str) -> int:
    """Be the agent of an editor that speaks the Agent Client Protocol, on standard input and output.

    Options for the sessions stand before `acp`, such as --model, --permission-mode and --max-budget-usd.
    """
    if logs_in:
        return run_panpan(ctx, ["login"])
    if find_spec("acp") is None:
        from panpan.system.environment import how_to_install

        raise ConfigError(
            f"the library that speaks the protocol is not installed; install it: {how_to_install(PACKAGE)}"
        )
    if sys.stdin.isatty():
        click.echo("panpan: an editor starts this and speaks to it on standard input; Ctrl+C ends it", err=True)
    given = server_options(ctx)
    import anyio

    from panpan.cli.start import begin_collection
    from panpan.faces.acp.server import AcpServer, serve
    from panpan.system.processes.own_process import hide_process

    hide_process(os.environ)
    begin_collection()
    server = AcpServer
    if protocol == "2":
        from panpan.faces.acp.v2.server import DraftServer

        server = DraftServer
    anyio.run(serve, given, lambda line: click.echo(f"panpan: {printable(line)}", err=True), server)
    return 0
