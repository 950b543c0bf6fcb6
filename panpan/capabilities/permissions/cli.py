"""`panpan permissions`: Show, explain and test rules; debug shows decisions.

Nothing is run and nothing is asked; the decision is that of a session in the same folder with the same settings.
"""

import json
from pathlib import Path
from typing import Any, get_args

import anyio
import click

from panpan.cli_kit.commands import CommandGroup, gate_of_folder, program_of, settings_of_folder
from panpan.errors import ConfigError
from panpan.permissions.folder_gate import describe_verdict, verdict_json, workspace_paths
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rule_checks import checked_examples
from panpan.permissions.rules.rules import COMMAND_TOOL, rule_sources, rules_of_no_tool, unusable_rules
from panpan.system.text.terminal_text import printable
from panpan.types.permission import PermissionMode

_CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose settings count.")
_JSON = click.option("--json", "as_json_object", is_flag=True, help="Print one JSON object.")


@click.group("permissions", cls=CommandGroup)
def permissions() -> None:
    """Show, explain and test the permission rules.

    Options before `permissions`, as in `panpan --allowedTools Edit permissions list`, count as they do in a run.
    """


@permissions.command("list")
@_CWD
@_JSON
@click.pass_context
def list_rules(ctx: click.Context, cwd: Path | None, as_json_object: bool) -> int:
    """List the rules, strongest first, with their places, and rules that can never match."""
    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    names = [tool.name for tool in program_of(ctx).tools_of_folder(workspace, loaded, locations)]
    permission = loaded.settings.permission
    sources = rule_sources(loaded)
    gate = PermissionGate(sources)
    warnings = [*loaded.warnings, *unusable_rules(loaded), *rules_of_no_tool(sources, names)]
    rules = {"deny": gate.rules.deny, "ask": gate.rules.ask, "allow": gate.rules.allow}
    shadowed = gate.shadowed_rules()
    if as_json_object:
        found: dict[str, Any] = {
            "mode": permission.mode,
            "external_directory": permission.external_directory,
            "doom_loop": permission.doom_loop,
            "rules": [
                {"behaviour": behaviour, "rule": rule.text, "place": rule.source}
                for behaviour, found_rules in rules.items()
                for rule in found_rules
            ],
            "warnings": warnings,
            "never_matter": [{"rule": one.rule.text, "place": one.rule.source, "why": one.why} for one in shadowed],
        }
        click.echo(json.dumps(found, indent=2))
        return 0
    click.echo(f"mode {permission.mode}; paths outside: {permission.external_directory}; ", nl=False)
    click.echo(f"the same call again and again: {permission.doom_loop}")
    for line in gate.rule_lines():
        click.echo(printable(line))
    if not any(rules.values()):
        click.echo("there are no rules", err=True)
    for warning in (*warnings, *map(str, shadowed)):
        click.echo(f"panpan: warning: {printable(warning)}", err=True)
    return 0


@permissions.command("explain")
@click.argument("line", metavar="COMMAND", required=False)
@click.option("--tool", metavar="NAME", help="Explain a call of this tool instead of a command.")
@click.option("--args", "arguments", metavar="JSON", help="Arguments of the call, as a JSON object.")
@click.option(
    "--mode", type=click.Choice(get_args(PermissionMode)), help="Permission mode; the settings' mode if not given."
)
@_CWD
@_JSON
@click.pass_context
def explain(
    ctx: click.Context,
    line: str | None,
    tool: str | None,
    arguments: str | None,
    mode: PermissionMode | None,
    cwd: Path | None,
    as_json_object: bool,
) -> int:
    """Explain what would happen to COMMAND, or to a call of --tool, part by part."""
    name, values = _call(line, tool, arguments)
    gate = gate_of_folder(ctx, cwd)
    verdict = anyio.run(gate.judge, name, values, mode)
    if as_json_object:
        click.echo(json.dumps(verdict_json(verdict, gate, name, values, mode), indent=2))
        return 0
    for text in describe_verdict(verdict, gate):
        click.echo(printable(text))
    return 0


@permissions.command("test")
@_CWD
@click.pass_context
def test(ctx: click.Context, cwd: Path | None) -> int:
    """Test the examples in rules; exit with 1 if one fails."""
    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    sources = rule_sources(loaded)
    paths = workspace_paths(workspace, loaded, locations)
    examples = list(checked_examples(sources, paths))
    failed = [example for example in examples if not example.is_right]
    for example in examples:
        click.echo(f"{'ok  ' if example.is_right else 'FAIL'} {printable(str(example))}")
    for shadowed in PermissionGate(sources).shadowed_rules():
        click.echo(f"panpan: warning: {printable(str(shadowed))}", err=True)
    click.echo(f"{len(examples)} examples, {len(failed)} failed" if examples else "no rule has examples", err=True)
    return 1 if failed else 0


def _call(line: str | None, tool: str | None, arguments: str | None) -> tuple[str, dict[str, Any]]:
    """Return the tool and the arguments to explain."""
    if (line is None) == (tool is None):
        raise click.UsageError("give a COMMAND, or --tool with --args")
    if line is not None:
        if arguments is not None:
            raise click.UsageError("--args goes with --tool")
        return COMMAND_TOOL, {"command": line}
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ConfigError('--args is not a JSON object, such as {"file_path": "a.py"}')
    return tool or "", values
