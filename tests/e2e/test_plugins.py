"""Plug-ins in the real program: from a folder to a session, and what reaches the model and the shell on the way."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Done, Panpan
from tests.e2e.test_skills import run, text_of, tools
from tests.model_server import call, say

HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/no.sh"'}]}


@pytest.fixture
def acme(panpan: Panpan) -> Path:
    """Return the folder of a plug-in that has one of everything."""
    folder = panpan.workspace.parent / "acme"
    texts = {
        ".claude-plugin/plugin.json": '{"name": "acme", "version": "1.2.0", "description": "Tools of Acme"}',
        "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys\n---\n!`sh ${CLAUDE_SKILL_DIR}/where.sh`",
        "skills/deploy/where.sh": "echo deployed from $0",
        "commands/docs/check.md": "Check the docs in $ARGUMENTS with ${CLAUDE_PLUGIN_ROOT}/x",
        "agents/reviewer.md": "---\nname: reviewer\ndescription: Reviews\ntools: Read\n---\nYou review.",
        "output-styles/terse.md": "---\nname: Terse\ndescription: Short\n---\nBe short.",
        "bin/acme-tool": "#!/bin/sh\necho a tool of acme",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bin/acme-tool").chmod(0o755)
    return folder


def add_hook(acme: Path) -> None:
    (acme / "hooks").mkdir()
    (acme / "hooks/hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [HOOK]}}))
    (acme / "hooks/no.sh").write_text('cat > "$CLAUDE_PLUGIN_DATA/told"\necho "not with acme" >&2\nexit 2')


def plugin(panpan: Panpan, *args: str) -> Done:
    return panpan.run("plugin", *args)


def test_plugin_counts_for_nothing_before_it_is_enabled(panpan: Panpan, acme: Path) -> None:
    add_hook(acme)
    added = plugin(panpan, "add", str(acme))

    _, requests = run(panpan, call("Bash", {"command": "acme-tool"}), say("Done."), args=("-p", "go", "-y"))

    assert added.code == 0
    assert "hook at PreToolUse Bash: sh " in added.stdout
    assert "program for commands: bin/acme-tool" in added.stdout
    assert "command of acme:deploy: sh ${CLAUDE_SKILL_DIR}/where.sh (skills/deploy/SKILL.md)" in added.stdout
    assert added.stdout.endswith("It is off. To use it: panpan plugin enable acme\n")
    assert "Skill" not in tools(requests[0])
    assert "acme:reviewer" not in json.dumps(requests[0].body)
    assert "command not found" in text_of(requests[1])


def test_enabled_plugin_brings_all_its_parts(panpan: Panpan, acme: Path) -> None:
    plugin(panpan, "add", str(acme))
    enabled = plugin(panpan, "enable", "acme")

    _, requests = run(
        panpan,
        call("Bash", {"command": "acme-tool"}),
        call("Skill", {"skill": "acme:deploy"}),
        call("Task", {"subagent_type": "acme:reviewer", "description": "d", "prompt": "p"}),
        say("Reviewed."),
        say("Done."),
        args=("-p", "/acme:docs:check all", "-y", "--output-style", "acme:Terse"),
    )

    assert "It is on" in enabled.stdout
    assert "- acme:deploy: Deploys" in text_of(requests[0])
    assert "Be short." in text_of(requests[0])
    assert "Check the docs in all with /" in text_of(requests[0])
    assert "a tool of acme" in text_of(requests[1])
    assert "deployed from " in text_of(requests[2])
    assert "You review." in json.dumps(requests[3].body["system"])
    assert "Reviewed." in text_of(requests[4])


def test_hook_of_a_plugin_says_no(panpan: Panpan, acme: Path) -> None:
    add_hook(acme)
    plugin(panpan, "add", str(acme))
    plugin(panpan, "enable", "acme")

    _, requests = run(
        panpan,
        call("Bash", {"command": "touch made"}),
        say("Done."),
        args=("-p", "go", "-y"),
    )

    assert "not with acme" in text_of(requests[1])
    assert not (panpan.workspace / "made").exists()
    assert "touch made" in (panpan.home / "plugins/data/acme/told").read_text()


def test_first_line_names_the_plugins(panpan: Panpan, acme: Path) -> None:
    done, _ = run(panpan, say("Hi."), args=("-p", "go", "-f", "stream-json", "--plugin-dir", str(acme)))

    assert done.lines[0]["plugins"] == [{"name": "acme", "path": str(acme), "version": "1.2.0"}]
    assert "acme:reviewer" in done.lines[0]["agents"]
    assert done.lines[0]["plugin_errors"] == []


def test_folder_without_mcp_brings_all_but_its_servers(panpan: Panpan, acme: Path) -> None:
    (acme / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "touch", "args": ["started"]}}}')

    done, _ = run(panpan, say("Hi."), args=("-p", "go", "-f", "stream-json", "--plugin-dir-no-mcp", str(acme)))

    assert done.lines[0]["plugins"] == [{"name": "acme", "path": str(acme), "version": "1.2.0"}]
    assert "acme:reviewer" in done.lines[0]["agents"]
    assert done.lines[0]["mcp_servers"] == []
    with_servers, _ = run(panpan, say("Hi."), args=("-p", "go", "-f", "stream-json", "--plugin-dir", str(acme)))
    assert [one["name"] for one in with_servers.lines[0]["mcp_servers"]] == ["plugin_acme_s"]


def test_changed_plugin_is_told_and_not_used(panpan: Panpan, acme: Path) -> None:
    plugin(panpan, "add", str(acme))
    plugin(panpan, "enable", "acme")
    (tool,) = panpan.home.glob("plugins/files/acme/*/bin/acme-tool")
    tool.chmod(0o700)
    tool.write_text("#!/bin/sh\necho another")

    done, requests = run(panpan, call("Bash", {"command": "acme-tool"}), say("Done."), args=("-p", "go", "-y"))
    (error,) = run(panpan, say("Hi."), args=("-p", "go", "-f", "stream-json"))[0].lines[0]["plugin_errors"]
    doctor = panpan.run("doctor")

    assert "bin/acme-tool is new" in error["message"]
    assert "bin/acme-tool is new, missing or changed since you enabled it" in done.stderr
    assert "command not found" in text_of(requests[1])
    assert "bin/acme-tool is new, missing or changed since you enabled it" in doctor.stdout
    assert plugin(panpan, "show", "acme").code == 1
    assert "acme  broken" in plugin(panpan, "list").stdout

    assert "acme is repaired" in plugin(panpan, "update", "acme").stdout
    assert "acme  on " in plugin(panpan, "list").stdout
    assert tool.read_text() == "#!/bin/sh\necho a tool of acme"


def test_update_waits_until_it_is_accepted(panpan: Panpan, acme: Path) -> None:
    plugin(panpan, "add", str(acme))
    plugin(panpan, "enable", "acme")
    add_hook(acme)
    (acme / "skills/deploy/SKILL.md").write_text("---\nname: deploy\ndescription: Deploys twice\n---\nx")

    updated = plugin(panpan, "update")
    _, before = run(panpan, say("Done."))
    plugin(panpan, "enable", "acme")
    _, after = run(panpan, say("Done."))

    assert "new: hooks/hooks.json" in updated.stdout
    assert "  +description: Deploys twice" in updated.stdout
    assert "would run, and did not before: hook at PreToolUse Bash" in updated.stdout
    assert "- acme:deploy: Deploys\n" in text_of(before[0])
    assert "- acme:deploy: Deploys twice\n" in text_of(after[0])


def test_plugins_of_a_catalogue_are_checked_by_name(panpan: Panpan, acme: Path) -> None:
    away = {"source": "url", "url": "https://127.0.0.1:9/x.git"}
    listed = [{"name": "acme", "source": f"./{acme.name}"}, {"name": "gone", "source": away}]
    (acme.parent / ".claude-plugin").mkdir()
    (acme.parent / ".claude-plugin/marketplace.json").write_text(json.dumps({"plugins": listed}))

    right = plugin(panpan, "validate", str(acme.parent), "acme")
    wrong = plugin(panpan, "validate", str(acme.parent), "gone")
    neither = plugin(panpan, "validate", str(acme.parent))

    assert (right.code, wrong.code, neither.code) == (0, 1, 1)
    assert "acme:deploy" in right.stdout
    assert "say which: acme, gone" in neither.stdout
    assert "https://127.0.0.1:9/x.git is not in this folder" in wrong.stdout


def test_only_plugin_of_a_catalogue_is_updated_when_others_come(panpan: Panpan, acme: Path) -> None:
    catalogue = acme.parent / ".claude-plugin/marketplace.json"
    catalogue.parent.mkdir()
    listed = [{"name": "acme", "source": f"./{acme.name}"}]
    catalogue.write_text(json.dumps({"plugins": listed}))
    added = plugin(panpan, "add", str(acme.parent))
    catalogue.write_text(json.dumps({"plugins": [*listed, {"name": "other", "source": "./other"}]}))

    updated = plugin(panpan, "update", "acme")

    assert (added.code, updated.code) == (0, 0)
    assert "acme is up to date" in updated.stdout


def test_plugin_that_is_wrong_is_told_with_file_and_line(panpan: Panpan, acme: Path) -> None:
    (acme / ".claude-plugin/plugin.json").write_text('{\n "name": "\u0430cme"\n}')
    refused = plugin(panpan, "add", str(acme))
    checked = plugin(panpan, "validate", str(acme))

    assert (refused.code, checked.code) == (2, 1)
    assert ".claude-plugin/plugin.json:2: the name '\u0430cme' has '\u0430' (Cyrillic small letter a)" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert plugin(panpan, "list").stdout == ""


def test_project_cannot_bring_a_plugin(panpan: Panpan, acme: Path) -> None:
    (panpan.workspace / ".panpan").mkdir()
    (panpan.workspace / ".panpan/settings.toml").write_text(f'plugin_folders = ["{acme}"]')

    done, requests = run(panpan, say("Done."), args=("-p", "go", "--trust"))

    assert "plugin_folders is ignored" in done.stderr
    assert "Skill" not in tools(requests[0])
