"""`panpan acp`: be the agent of an editor."""

import os
import sys
from importlib.util import find_spec

import click

from panpan.cli_kit.commands import run_panpan
from panpan.cli_kit.options import RUN_OPTIONS, overrides_of
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import printable

PACKAGE = "agent-client-protocol>=0.12,<0.13"
"""The library with the protocol's messages, as in pyproject.toml."""


@click.command("acp")
@click.option("--login", "logs_in", is_flag=True, help="Give panpan an API key on this terminal, and exit.")
@click.pass_context
def command(ctx: click.Context, logs_in: bool) -> int:
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
    options = ctx.meta.get(RUN_OPTIONS) or {}
    import anyio

    from panpan.cli.start import begin_collection
    from panpan.faces.acp.server import serve
    from panpan.session.frontend import SessionOptions
    from panpan.system.processes.own_process import hide_process

    given: SessionOptions = {"env": dict(os.environ), "overrides": overrides_of(options) if options else {}}
    if options:
        given["mcp_config"] = options["mcp_config"]
        given["strict_mcp_config"] = options["strict_mcp_config"]
        given["trusts_project"] = options["trusts_project"]
        given["system_prompt"] = options["system_prompt"]
        given["append_system_prompt"] = options["append_system_prompt"]
    hide_process(os.environ)
    begin_collection()
    anyio.run(serve, given, lambda line: click.echo(f"panpan: {printable(line)}", err=True))
    return 0
