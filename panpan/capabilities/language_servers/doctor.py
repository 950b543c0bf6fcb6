"""Checks of `panpan doctor`: which language servers would be started; none is."""

from collections.abc import Iterable

from panpan.capabilities.language_servers.server_process import find_program, server_kinds
from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_language_servers(machine: Machine) -> Iterable[Check]:
    """Yield the language servers that there are; in a trusted project one of the project's own is found."""
    if machine.loaded is None:
        return
    settings, is_trusted = machine.loaded.settings[LanguageServersSettings], machine.loaded.trust.is_trusted

    def find(program: str) -> str | None:
        if is_trusted:
            return find_program(program, machine.env, machine.locations.project_root)
        return machine.find_program(program)

    names = [kind.name for kind in server_kinds(settings) if find(kind.command[0])]
    found = f"language servers: {', '.join(names)}"
    if not settings.enabled:
        origin = machine.loaded.origins["language_servers.enabled"]
        yield Check("code", "note", f"language servers are switched off by {origin}")
    elif not names:
        advice = "a server, such as ty for Python, shows the model definitions, references and new errors"
        yield Check("code", "optional", "no language server", advice)
    elif not is_trusted:
        advice = "they are started in trusted projects only; `panpan trust add` trusts this one"
        yield Check("code", "note", found, advice)
    else:
        yield Check("code", "ok", found)


CHECKS: FeatureChecks = {"programs": check_language_servers}
