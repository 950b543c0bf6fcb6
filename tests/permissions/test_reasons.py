"""Reasons of decisions, for programs: the kind, and the rule or mode that decided."""

from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionMode
from tests.permissions.folder import Project, bash, decide

SETTINGS = """[permission]
allow = ["Bash(npm run *)"]
ask = [
    "Bash(npm run release)",
]
deny = ["Bash(rm *)",
        "Edit(/locked/**)"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def reason_of(decision: Decision) -> dict[str, str]:
    fields = decision.reason.as_json()
    assert fields.pop("text")
    return fields


@pytest.mark.parametrize(
    ("command", "decision", "kind", "rule", "line", "part"),
    [
        ("npm run build", Allow, "rule", "Bash(npm run *)", 2, ""),
        ("npm run release", Ask, "rule", "Bash(npm run release)", 4, "npm run release"),
        ("ls && rm x", Deny, "rule", "Bash(rm *)", 6, "rm x"),
        ("$PROGRAM x", Ask, "unclear", "Bash(rm *)", 6, "$PROGRAM x"),
        ("ls; $PROGRAM x", Ask, "unclear", "Bash(rm *)", 6, "$PROGRAM x"),
        ("ls && touch locked/x", Deny, "rule", "Edit(/locked/**)", 7, "touch locked/x"),
        ("ls && frob locked/x", Ask, "unclear", "Edit(/locked/**)", 7, "frob locked/x"),
    ],
)
def test_reason_names_a_rule_with_its_line_and_command_part(
    project: Project, command: str, decision: type, kind: str, rule: str, line: int, part: str
) -> None:
    found = bash(project.gate(SETTINGS), command)

    assert isinstance(found, decision)
    assert (found.reason.kind, found.reason.rule, found.reason.command) == (kind, rule, part)
    assert found.reason.place == f"{project.settings}:{line}"
    assert f"{rule} from {project.settings}:{line}" in found.reason.text


def test_reason_names_the_flag_of_a_rule(project: Project) -> None:
    found = bash(project.gate(permission__allow=("Bash(make)",)), "make")

    assert (found.reason.rule, found.reason.place) == ("Bash(make)", "--allowedTools")


def test_reason_names_the_path_of_a_path_rule(project: Project) -> None:
    found = decide(project.gate(SETTINGS), "Write", {"file_path": "locked/a", "content": ""})

    assert isinstance(found, Deny)
    assert (found.reason.rule, found.reason.path) == ("Edit(/locked/**)", str(project.root / "locked/a"))


def test_reason_of_a_read_only_line_names_its_assumption(project: Project) -> None:
    found = bash(project.gate(), "ls | head -3")

    assert isinstance(found, Allow)
    assert found.reason.kind == "read-only"
    assert "ls only looks" in found.reason.assumption
    assert "head only looks" in found.reason.assumption


def test_reason_names_the_unknown_part_of_a_command(project: Project) -> None:
    found = bash(project.gate(), "ls && make test")

    assert isinstance(found, Ask)
    assert (found.reason.kind, found.reason.command) == ("unknown", "make test")
    assert "make" in found.reason.assumption


def test_reason_of_a_known_write_is_not_allowed(project: Project) -> None:
    assert reason_of(bash(project.gate(), "echo x > a.txt"))["kind"] == "not-allowed"


@pytest.mark.parametrize(
    ("command", "part", "doubt"),
    [
        ("if [ -f a ]; then cat a; fi", "", "there is an if in it"),
        ("for x in a; do cat a; done; ls", "for x in a", "sets shell variables"),
        ("while [ -f a ]; do rm a; done", "rm a", "rm changes files"),
        ("cat $(ls)", "cat $(ls)", "only known when it runs"),
        ("ls -a | xargs cat", "xargs cat", "what xargs gives to cat is known only when it runs"),
        ("cat list | xargs rm", "xargs rm", "rm changes files"),
        ("(cd src && make)", "make", "make runs code"),
        ("[[ -v x ]]", "", "with -v"),
    ],
)
def test_reason_names_the_obstacle(project: Project, command: str, part: str, doubt: str) -> None:
    found = bash(project.gate(), command)

    assert isinstance(found, Ask)
    assert found.reason.command == part or (not part and found.reason.command == command)
    assert doubt in found.reason.text


def test_reason_names_a_doubted_command_once(project: Project) -> None:
    assert bash(project.gate(), "(cd src && make)").reason.text == "make runs code"
    assert bash(project.gate(), "(cd src && make test)").reason.text == "`make test`: make runs code"


@pytest.mark.parametrize(
    ("tool", "arguments", "mode", "decision", "kind", "path"),
    [
        ("Write", {"file_path": ".env", "content": ""}, "bypassPermissions", Ask, "protected", ".env"),
        ("Read", {"file_path": ".env"}, "default", Ask, "protected", ".env"),
        ("Read", {"file_path": "../a"}, "default", Ask, "outside", "../a"),
        ("Write", {"file_path": "a", "content": ""}, "plan", Deny, "mode", "a"),
        ("Write", {"file_path": "a", "content": ""}, "dontAsk", Deny, "mode", "a"),
        ("Write", {"file_path": "a", "content": ""}, "acceptEdits", Allow, "mode", ""),
        ("Write", {"file_path": "a", "content": ""}, "default", Ask, "not-allowed", "a"),
        ("Read", {"file_path": "a"}, "default", Allow, "read-only", ""),
        ("Read", {"file_path": "a\0b"}, "default", Deny, "bad-path", ""),
        ("Read", {"path": "a"}, "default", Deny, "bad-call", ""),
        ("Nothing", {}, "default", Deny, "bad-call", ""),
    ],
)
def test_reason_has_its_kind_and_path(
    project: Project, tool: str, arguments: dict[str, object], mode: str, decision: type, kind: str, path: str
) -> None:
    found = decide(project.gate(), tool, arguments, mode)  # type: ignore[arg-type]

    assert isinstance(found, decision)
    assert found.reason.kind == kind
    assert found.reason.path == (str((project.root / path).resolve()) if path else "")


def test_reason_kind_survives_a_denial_by_mode(project: Project) -> None:
    found = bash(project.gate(), "make", "dontAsk")

    assert isinstance(found, Deny)
    assert (found.reason.kind, found.reason.command) == ("mode", "make")


MODES: tuple[PermissionMode, ...] = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
STRICT = """[permission]
external_directory = "deny"
ask = ["Bash(git push *)"]
deny = ["Bash(shutdown *)", "Read(/secret/**)", "Edit(/locked/**)"]
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("settings", ["", STRICT])
@pytest.mark.parametrize(
    "part",
    [
        "rm x", "make", "X=1", "touch a", "frob", "echo x >a", "$P x", "cat ../out/x", "cat aw*/x", "cat .env",
        "cat .e*", "rm -rf ..", "frob .git/config", "git push origin", "shutdown now", "cat secret/x", "cat s*/x",
        "grep -r a .", "frob locked/x", "touch locked/x", "find . | xargs cat", "find . -exec cat {} +",
        "git clean -xfd",
    ],
)  # fmt: skip
def test_reason_of_a_question_names_its_part_and_basis(
    project: Project, part: str, settings: str, mode: PermissionMode
) -> None:
    for name in ("../out/x", ".env", "secret/x", "a b"):
        (project.root / name).parent.mkdir(exist_ok=True)
        (project.root / name).touch()
    (project.root / "away").symlink_to("../out")

    found = bash(project.gate(settings), f"ls; {part}", mode)

    if isinstance(found, Allow):
        return
    reason = found.reason
    assert reason.command in part
    assert reason.command
    assert reason.path or reason.rule or reason.assumption
    if reason.kind in ("rule", "unclear", "withheld"):
        assert reason.rule
        assert reason.place.startswith(str(project.settings))
    if reason.kind in ("outside", "protected"):
        assert reason.path or reason.assumption


def test_reason_of_a_look_in_an_unknown_folder_says_so(project: Project) -> None:
    found = bash(project.gate(), "cd a; cd b; cd c; cd d; cat a")

    assert isinstance(found, Ask)
    assert found.reason.command == "cat a"
    assert "cannot tell in which folder" in found.reason.assumption


@pytest.mark.parametrize("command", ["make test", "ls; make test"])
def test_plan_mode_names_the_obstacle(project: Project, command: str) -> None:
    found = bash(project.gate(), command, "plan")

    assert isinstance(found, Deny)
    assert (found.reason.kind, found.reason.command) == ("mode", "make test")
    assert found.reason.assumption in found.reason.text
    assert ("`make test`" in found.reason.text) is (command != "make test")


def test_plan_mode_names_a_look_outside_the_sandbox(project: Project) -> None:
    found = decide(project.gate(), "Bash", {"command": "ls", "sandbox": "off"}, "plan")

    assert isinstance(found, Deny)
    assert "sandbox" in found.reason.assumption


# --- protected paths in commands


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/config",
        "cd src && echo x >> ../.bashrc",
        "cp a .git/hooks/pre-commit",
        "cat a; cat .env",
        "curl -o .git/config http://example.org",
        "python3 make.py --out=.envrc",
        "tee .vscode/tasks.json < a",
        "bash -c 'echo x' .git/config",
        "sed -i s/a/b/ ~/.bashrc",
        'cp a "$HOME"/.profile',
        'tee "${HOME}/.zshrc"',
        "echo x >> ~/.bashrc",
        "for f in a; do cp $f $D/.envrc; done",
        "rm -rf .",
        "cd src && rm -rf ..",
        "mv ../project .",
    ],
)
def test_possible_protected_file_asks_though_all_is_allowed(project: Project, command: str, mode: str) -> None:
    (project.root / "src").mkdir()

    found = bash(project.gate('permission.allow = ["Bash"]'), command, mode)  # type: ignore[arg-type]

    assert isinstance(found, Ask), found
    assert found.is_protected
    assert found.reason.kind == "protected"


@pytest.mark.parametrize("command", ["rm -rf src", "rm *.o", "git add src", "make CC=gcc", "cp a $D", "echo $HOME > a"])
def test_command_without_protected_paths_follows_the_rules(project: Project, command: str) -> None:
    (project.root / "src").mkdir()

    found = bash(project.gate('permission.allow = ["Bash"]'), command)

    assert isinstance(found, Allow), found


@pytest.mark.parametrize("command", ["cat .git/config", "ls .git", "echo .env", "git log -- .github/workflows/x.yml"])
def test_protected_places_without_secrets_are_listed_unasked(project: Project, command: str) -> None:
    assert isinstance(bash(project.gate(), command), Allow)


def test_rule_that_denies_writing_holds_for_redirects(project: Project) -> None:
    assert isinstance(bash(project.gate('permission.deny = ["Edit(/locked/**)"]'), "echo x > locked/a"), Deny)


@pytest.mark.parametrize("command", ["make", "$PROGRAM", "for f in *; do rm $f; done", "echo `rm x`", "(", "eval x"])
def test_unknown_command_asks_or_is_denied_by_mode(project: Project, command: str) -> None:
    for mode in ("default", "acceptEdits"):
        assert isinstance(bash(project.gate(), command, mode), Ask)
    for mode in ("plan", "dontAsk"):
        assert isinstance(bash(project.gate(), command, mode), Deny)


# --- questions of their own


def test_outside_write_asks_about_the_place_though_allowed(project: Project) -> None:
    found = bash(project.gate('permission.allow = ["Bash(cp *)"]'), "cp a ../b")

    assert isinstance(found, Ask)
    assert (found.reason.kind, found.reason.path) == ("outside", str(project.root.parent / "b"))


def test_rule_for_the_folder_answers_the_place_question(project: Project) -> None:
    allowed = f'permission.allow = ["Bash(cp *)", "Edit(/{project.root.parent}/out/**)"]'

    assert isinstance(bash(project.gate(allowed), "cp a ../out/b"), Allow)


def test_rule_for_the_whole_line_opens_its_absolute_paths(project: Project) -> None:
    line = f"cp a {project.root.parent}/b"

    assert isinstance(bash(project.gate(f'permission.allow = ["Bash({line})"]'), line), Allow)
    assert isinstance(bash(project.gate('permission.allow = ["Bash(cp a ../b)"]'), "cp a ../b"), Ask)


def test_outside_paths_can_be_denied_or_allowed_by_the_setting(project: Project) -> None:
    denying = project.gate('permission.external_directory = "deny"\npermission.allow = ["Read(//etc/hosts)"]')
    open_ = project.gate('permission.external_directory = "allow"')

    for mode in ("default", "bypassPermissions"):
        denied = decide(denying, "Read", {"file_path": "/etc/passwd"}, mode)
        assert isinstance(denied, Deny)
        assert denied.reason.kind == "outside"
    assert isinstance(decide(denying, "Read", {"file_path": "/etc/hosts"}), Allow)
    assert isinstance(decide(open_, "Read", {"file_path": "/etc/hosts"}), Allow)
    written = decide(open_, "Write", {"file_path": "../a", "content": ""})
    assert isinstance(written, Ask)
    assert written.reason.kind == "not-allowed"
    assert written.approved_paths == {project.root.parent / "a"}
    protected = decide(open_, "Read", {"file_path": "~/.ssh/id_rsa"})
    assert isinstance(protected, Ask)
    assert protected.is_protected
