"""Places hidden in a box: secrets, places that rules close, and the home for commands allowed unasked."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from panpan.system.environment import child_environment
from panpan.system.processes.process import Captured, capture
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from panpan.system.sandbox.hidden_places import ReadRules, hidden_home, secrets_of_user, toolchains
from panpan.system.sandbox.profile import MAX_ENTRIES, Profile, protected_places, workspace_write
from tests.needed_programs import need
from tests.system.sandbox.boxes import Box


def made(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"in {name}\n")
    return root


def hidden_in(root: Path, reading: ReadRules | None = None) -> set[str]:
    look = protected_places(root) if reading is None else protected_places(root, reading=reading)
    return {str(place.relative_to(root)) for place in look.hidden}


async def test_hidden_place_is_unreadable_except_its_shown_parts(box: Box) -> None:
    home = made(box.outside, "notes", ".ssh/key", "tool/bin/run", "tool/.aws/credentials")
    made(box.workspace, ".env")
    (home / "other-name").symlink_to("tool")
    hidden = [home, home / "tool" / ".aws", box.workspace / ".env"]
    profile = workspace_write([box.workspace]).hiding(hidden, shown=[home / "tool", home / "other-name", home / "gone"])

    ended = await box.run(
        'for f in notes .ssh/key tool/.aws/credentials tool/bin/run other-name/bin/run; do cat "$1/$f"; done;'
        ' cat .env; cat "$1/../workspace/src/../.env"; cat src/module.py',
        home,
        profile=profile,
    )

    assert ended.stdout.decode() == "in tool/bin/run\nin tool/bin/run\nx = 1\n"


async def test_hidden_place_cannot_be_changed(box: Box) -> None:
    home = made(box.outside, ".ssh/key")
    made(box.workspace, ".env")
    profile = workspace_write([box.workspace]).hiding([home / ".ssh", box.workspace / ".env"])

    await box.run(
        'echo x >.env; rm -f .env; mv .env gone; chmod 777 .env; echo x >"$1/.ssh/new"; rm -rf "$1/.ssh"',
        home,
        profile=profile,
    )

    assert (box.workspace / ".env").read_text() == "in .env\n"
    assert [(path.name, path.read_text()) for path in (home / ".ssh").iterdir()] == [("key", "in .ssh/key\n")]


async def test_workspace_in_a_hidden_home_works(box: Box) -> None:
    home = box.workspace.parent
    profile = workspace_write([box.workspace / "src"]).hiding([home])

    ended = await box.run("cd src && cat module.py && ls ../.. 2>&1; cat ../../outside/file", profile=profile)

    assert b"x = 1" in ended.stdout
    assert b"untouched" not in ended.stdout


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (".env", ".env"),
        (".ENV", ".ENV"),
        ("web/.env.local", "web/.env.local"),
        (".aws/credentials", ".aws"),
        ("a/.config/gcloud/x", "a/.config/gcloud"),
        ("deploy/id_ed25519", "deploy/id_ed25519"),
        (".netrc", ".netrc"),
    ],
)
def test_workspace_secrets_are_hidden(tmp_path: Path, name: str, hidden: str) -> None:
    assert hidden_in(made(tmp_path, name)) == {hidden}


@pytest.mark.parametrize("name", [".env.example", ".npmrc", "pip.conf", ".yarnrc.yml", "env.py", ".env/pyvenv.cfg"])
def test_tool_files_of_a_workspace_are_visible(tmp_path: Path, name: str) -> None:
    assert hidden_in(made(tmp_path, name)) == set()


def test_secret_in_the_root_is_hidden_among_many_files(tmp_path: Path) -> None:
    root = made(tmp_path, *(f"file-{number}" for number in range(2 * MAX_ENTRIES)), ".env", ".netrc")

    assert set(protected_places(root).hidden) == {root / ".env", root / ".netrc"}


def test_tracked_file_is_no_secret(tmp_path: Path) -> None:
    need("git")
    made(tmp_path, ".env", "web/.env")
    for command in (["init", "-q"], ["add", ".env"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)

    assert hidden_in(tmp_path) == {"web/.env"}


def test_rules_close_and_open(tmp_path: Path) -> None:
    made(tmp_path, ".env", "web/.env", "data/a.secret", "data/b.txt")
    reading = ReadRules(closes=lambda path: path.suffix == ".secret", opens=lambda path: path == tmp_path / ".env")

    assert hidden_in(tmp_path, reading) == {"web/.env", "data/a.secret"}


def test_closing_rule_is_stronger(tmp_path: Path) -> None:
    reading = ReadRules(closes=lambda path: True, opens=lambda path: True)

    assert hidden_in(made(tmp_path, ".env"), reading) == {".env"}


def test_nearest_mark_decides(tmp_path: Path) -> None:
    home = tmp_path
    profile = Profile(writable=(home / "work",)).hiding(
        [home, home / ".ssh", home / "tool" / "key", home / "work" / ".env", home / "tool"], shown=[home / "tool"]
    )

    assert profile.hidden == (home, home / "tool" / "key", home / "work" / ".env")
    assert profile.shown == (home / "tool",)


def test_home_secrets_are_found(tmp_path: Path) -> None:
    made(tmp_path, ".ssh/key", ".aws/x", ".htpasswd", ".config/gh/hosts.yml", ".bash_history", "project/x", ".bashrc")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".kube").symlink_to("elsewhere")
    names = {".ssh", ".aws", ".htpasswd", ".config/gh", ".bash_history", "elsewhere"}

    found = {place for place in secrets_of_user(tmp_path) if place.is_relative_to(tmp_path)}

    assert found == {tmp_path / name for name in names}


@pytest.mark.parametrize(
    ("path", "text", "is_secret"),
    [
        (".config/pip/pip.conf", "[global]\nindex-url = http://index.lab/simple\n", False),
        (".config/pip/pip.conf", "[global]\nindex-url = https://me:word@index.lab/simple\n", True),
        (".npmrc", "registry=https://npm.lab/\nfund=false\n", False),
        (".npmrc", "registry=https://npm.lab/\n//npm.lab/:_authToken=x\n", True),
        (".yarnrc.yml", "npmAuthToken: x\n", True),
        (".curlrc", "silent\nuser = me:x\n", True),
        (".wgetrc", "timeout = 9\n", False),
        (".wgetrc", "http_password = x\n", True),
        (".netrc", "", True),
    ],
)
def test_tool_settings_are_secret_if_they_hold_a_credential(
    tmp_path: Path, path: str, text: str, is_secret: bool
) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)

    assert any(place.is_relative_to(tmp_path) for place in secrets_of_user(tmp_path)) is is_secret


@pytest.mark.parametrize(
    ("path", "links", "shown"),
    [
        (".cargo/bin", {}, {".cargo/bin", ".cargo", ".rustup"}),
        (".nvm/versions/node/v22/bin", {}, {".nvm/versions/node/v22/bin", ".nvm/versions/node/v22"}),
        ("miniforge3/condabin", {}, {"miniforge3/condabin", "miniforge3"}),
        ("bin", {}, {"bin"}),
        ("bin", {"bin/tool": "opt/tool/bin/tool"}, {"bin", "opt/tool/bin", "opt/tool"}),
        (".local/bin", {".local/bin/ruff": ".local/share/uv/tools/ruff/bin/ruff"}, {
            ".local/bin", ".local/share/uv", ".local/share/uv/tools/ruff/bin", ".local/share/uv/tools/ruff",
        }),
        ("py/bin", {"py": "real"}, {"py", "real/bin", "real"}),
    ],
)  # fmt: skip
def test_programs_on_the_path_are_shown_with_their_needs(
    tmp_path: Path, path: str, links: Mapping[str, str], shown: set[str]
) -> None:
    for target in links.values():
        made(tmp_path, f"{target}/x" if target == "real" else target)
    (tmp_path / "real" / "bin").mkdir(parents=True, exist_ok=True)
    for name in (".rustup", *(() if "py" in links else (path,))):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        (tmp_path / name).symlink_to(tmp_path / target)

    found = toolchains(tmp_path, {"PATH": f"/usr/bin:{tmp_path / path}"}, [])

    assert {str(place.relative_to(tmp_path)) for place in found} == shown


def test_virtual_environments_python_is_shown(tmp_path: Path) -> None:
    made(tmp_path, "pythons/3.13/bin/python3.13")
    (tmp_path / "work" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "work" / ".venv" / "bin" / "python").symlink_to(tmp_path / "pythons" / "3.13" / "bin" / "python3.13")

    assert tmp_path / "pythons" / "3.13" in toolchains(tmp_path, {}, [tmp_path / "work"])


def test_needed_home_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()

    assert hidden_home([tmp_path / "home" / "work"]) == tmp_path / "home"
    assert hidden_home([tmp_path / "home"]) is None
    assert hidden_home([tmp_path]) is None
    monkeypatch.setenv("HOME", "/")
    assert hidden_home([tmp_path]) is None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a workspace, secrets and notes in it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return made(
        tmp_path / "home", "work/.env", "work/module.py", ".ssh/key", "notes", "data/x", ".panpan/settings.toml"
    )


async def ran(sandbox: CommandSandbox, line: str, cwd: Path, **bounds: object) -> Captured:
    if await sandbox.is_missing():
        pytest.skip("no sandbox works here")
    wanted = Bounds(roots=(cwd,), **bounds)  # type: ignore[arg-type]
    async with sandbox.boxed(["/bin/bash", "-c", line], child_environment(), cwd, wanted) as start:
        ended = await capture(
            start.argv, cwd=cwd, env=start.env, timeout_s=60, max_bytes=100_000, pass_fds=start.pass_fds
        )
    await sandbox.aclose()
    return ended


LOOKS = "cat module.py .env ~/.ssh/key ~/.panpan/settings.toml ~/notes ~/data/x; true"


@pytest.mark.parametrize("is_read_only", [True, False])
async def test_secrets_are_hidden_from_every_command(home: Path, is_read_only: bool) -> None:
    sandbox = CommandSandbox(is_on=True, home=home / ".panpan")

    ended = await ran(sandbox, LOOKS, home / "work", is_read_only=is_read_only)

    assert ended.stdout.decode() == "in work/module.py\nin notes\nin data/x\n"


@pytest.mark.parametrize("is_read_only", [True, False])
async def test_home_is_hidden_from_unasked_commands(home: Path, is_read_only: bool) -> None:
    sandbox = CommandSandbox(
        is_on=True, home=home / ".panpan", reading=ReadRules(opened=(home / "data", home / ".ssh" / "key"))
    )

    ended = await ran(sandbox, LOOKS, home / "work", is_read_only=is_read_only, hides_home=True)

    assert ended.stdout.decode() == "in work/module.py\nin .ssh/key\nin data/x\n"


async def test_approved_places_are_visible_to_their_command(home: Path) -> None:
    sandbox = CommandSandbox(is_on=True, home=home / ".panpan")
    shown = frozenset({home / "work" / ".env", home / "notes"})

    ended = await ran(sandbox, LOOKS, home / "work", is_read_only=True, hides_home=True, shown=shown)

    assert ended.stdout.decode() == "in work/module.py\nin work/.env\nin notes\n"


async def test_closed_place_stays_closed_even_if_shown(home: Path) -> None:
    rules = ReadRules(closed=(home / "notes",), opened=(home / "notes", home / "data"))

    ended = await ran(CommandSandbox(is_on=True, reading=rules), LOOKS, home / "work", is_read_only=False)

    assert "in notes" not in ended.stdout.decode()
    assert "in data/x" in ended.stdout.decode()


def test_git_settings_are_shown_unless_they_hold_a_credential(tmp_path: Path) -> None:
    settings = tmp_path / ".gitconfig"
    settings.write_text("[user]\n\tname = Ada\n[credential]\n\thelper = store\n")
    assert settings in toolchains(tmp_path, {}, [])

    settings.write_text('[url "https://ada:secret@example.org/"]\n\tinsteadOf = https://example.org/\n')
    assert settings not in toolchains(tmp_path, {}, [])

    settings.rename(tmp_path / "dotfiles")
    settings.symlink_to("dotfiles")
    assert settings not in toolchains(tmp_path, {}, [])
    (tmp_path / "dotfiles").write_text("[user]\n\tname = Ada\n")
    assert {settings, tmp_path / "dotfiles"} <= set(toolchains(tmp_path, {}, []))
