import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.files.paths import PathResolver
from panpan.system.files.protected import (
    PROTECTED_GROUPS,
    holds_secrets,
    may_be_protected,
    may_name_secrets,
    plain_names,
    protections,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "work"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def paths(root: Path) -> PathResolver:
    return PathResolver(root, home=root.parent)


@pytest.mark.parametrize(
    "text",
    [
        ".git", ".git/config", ".git/hooks/pre-commit", ".gitmodules", "deep/in/.git/hooks/x", "sub/.git",
        ".panpan/settings.toml", ".claude/settings.json", ".mcp.json", ".vscode/tasks.json", ".idea/workspace.xml",
        ".envrc", "sub/.envrc", ".github/workflows/ci.yml", ".pre-commit-config.yaml", ".npmrc", ".pypirc", ".netrc",
        ".ssh/authorized_keys", ".env", ".env.local", ".bashrc", "x.code-workspace", ".husky/pre-push",
        "~/.bashrc", "~/.zshrc", "~/.profile", "~/.ssh/config", "~/.gitconfig", "~/.config/git/config",
        "~/.aws/credentials", "~/.local/bin/git", "~/Library/LaunchAgents/x.plist", "/etc/profile.d/x.sh",
        "/etc/cron.d/x", "~/.config/fish/x",
        ".GIT/config", ".Git/HOOKS/x", ".g\u200cit/config", ".git./config", ".git /config", "GIT~1/config",
        ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".drone.yml",
        ".woodpecker.yml", ".woodpecker/test.yaml", ".cirrus.yml", ".buildkite/pipeline.yml",
        ".forgejo/workflows/x.yml",
        ".gitea/workflows/x.yml", ".gitpod.yml", ".hg/hgrc", "~/.hgrc", ".yarn/plugins/x.cjs", ".yarn/releases/y.cjs",
        ".yarnrc", ".yarnrc.yml", "~/.irbrc", "~/.pryrc", "~/.psqlrc", "~/.sqliterc", "~/.bashrc.d/x", "~/.zshrc.local",
        ".cursorrules", ".windsurfrules", ".amazonq/rules/x.md", ".junie/guidelines.md",
        ".github/copilot-instructions.md", "id_ed25519_sk", "id_ecdsa_sk", ".htpasswd", "sub/.htpasswd",
        ".vscode-insiders/tasks.json", ".trae/mcp.json", ".gradle/init.gradle", ".jj/repo/config.toml", ".luarc.json",
        ".lintstagedrc.js", "sub/.lintstagedrc.mjs", "lint-staged.config.js", "flake.nix", "shell.nix", ".svn/wc.db",
        "~/.config/rclone/rclone.conf", "~/.curlrc", "~/.wgetrc", "server.key", "certs/CA.PEM", "x.p12",
        ".venv/lib/python3.11/site-packages/x.pth", "dist-packages/x.pth",
        ".git::$INDEX_ALLOCATION/config", ".\uff47it/config", ".BashRC", ".VSCode/settings.json", "X.CODE-WORKSPACE",
    ],
)  # fmt: skip
def test_autostart_and_credential_files_are_protected(text: str, paths: PathResolver) -> None:
    assert paths.locate(text).is_protected


@pytest.mark.parametrize(
    "text",
    [
        "src/main.py", "git/config", ".gitignore", ".gitattributes", ".github/dependabot.yml", "workflows/ci.yml",
        "config/git", ".config/app.toml", ".env.example", "environment", "my.git", "profile.d/x", "etc/profile.d/x",
        "models/best.pth", "site-packages/x.py", ".hg/store/x", ".yarn/cache/x.zip", ".forgejo/x.md", "travis.yml",
        "src/key", "keys/README", "x.keys", "pem", "id_ed25519.txt", ".config/x", "woodpecker/x", ".github/CODEOWNERS",
        "etc/cron.d/x", "AGENTS.md", "ssh/config", "~/notes.txt", "bin/tool",
    ],
)  # fmt: skip
def test_ordinary_files_are_not_protected(text: str, paths: PathResolver) -> None:
    assert not paths.locate(text).is_protected


@pytest.mark.parametrize(
    "text",
    [".tool-versions", "sub/rust-toolchain.toml", ".bazelrc", ".bazeliskrc", ".mvn/jvm.config", ".mise.local.toml",
     "gradle/wrapper/gradle-wrapper.properties", ".bundle/config", "bunfig.toml", ".helix/languages.toml", ".ghci",
     ".autoenv", ".config/mise/config.toml", ".iex.exs"],
)  # fmt: skip
def test_names_that_choose_a_program_are_protected(text: str) -> None:
    assert [group.reason for group, _ in protections(Path("/work", text))]


@pytest.mark.parametrize(
    "text",
    ["Makefile", "conftest.py", "package.json", ".gitattributes", ".nvmrc", ".python-version", ".rspec", ".eslintrc.js",
     "gradle/libs.versions.toml", "build.gradle", "mise", "bundle/config", ".editorconfig", ".bazelignore"],
)  # fmt: skip
def test_sources_and_version_choices_are_not_protected(text: str) -> None:
    assert not list(protections(Path("/work", text)))


@pytest.mark.parametrize("text", [".travis.yml", ".buildkite/x", "server.pem", "id.key", ".cursorrules", "~/.psqlrc"])
def test_files_without_credentials_may_be_read(text: str, paths: PathResolver) -> None:
    assert not paths.locate(text).is_secret


@pytest.mark.parametrize("text", ["id_ed25519_sk", ".htpasswd", "~/.config/rclone/rclone.conf", "~/.curlrc", ".wgetrc"])
def test_credential_files_may_not_be_read(text: str, paths: PathResolver) -> None:
    assert paths.locate(text).is_secret


@pytest.mark.parametrize(
    ("text", "is_only_as_named"),
    [("x.pem", True), ("site-packages/x.pth", True), (".env", False), (".ssh/x.pem", False), ("a.py", False)],
)
def test_common_program_inputs_are_closed_only_as_named(text: str, is_only_as_named: bool, paths: PathResolver) -> None:
    assert paths.locate(text).is_only_as_named is is_only_as_named


def test_held_in_names_workspace_and_home(paths: PathResolver, root: Path) -> None:
    assert paths.held_in(root) == "the workspace"
    assert paths.held_in(root.parent) == "your home folder and the workspace"
    assert paths.held_in(Path("/")) == "your home folder and the workspace"
    assert paths.held_in(root / "src") is None
    assert paths.held_in(root.parent / "work2") is None


@given(st.sampled_from([name for group in PROTECTED_GROUPS for name in group.names]), st.text("aB1", max_size=3))
def test_quick_check_misses_no_protected_name(name: str, filling: str) -> None:
    assert may_be_protected(Path(name.replace("*", filling)).name.upper())
    assert not may_be_protected("main.py")


def test_protected_places_stay_so_through_links(paths: PathResolver, root: Path) -> None:
    (root / ".git").mkdir()
    (root / "innocent").symlink_to(".git")
    (root / "hook").symlink_to(".git/hooks/post-checkout")

    assert paths.locate("innocent/config").is_protected
    assert paths.locate("hook").is_protected


def test_link_with_a_protected_name_protects_its_target(paths: PathResolver, root: Path) -> None:
    (root / "store").mkdir()
    (root / "dotfiles").mkdir()
    (root / ".git").symlink_to("store")
    (root.parent / ".bashrc").symlink_to("work/dotfiles/bashrc")

    assert paths.locate(".git/config").is_protected
    assert paths.locate("store/config").is_protected
    assert paths.locate("dotfiles/bashrc").protection == "is run when a shell or a session starts"
    assert not paths.locate("dotfiles/README").is_protected


def test_later_links_are_noticed(paths: PathResolver, root: Path) -> None:
    (root / "store").mkdir()
    was_protected = paths.locate("store/config").is_protected

    (root / ".git").symlink_to("store")

    assert not was_protected
    assert paths.locate("store/config").is_protected


def test_link_to_the_workspace_does_not_close_it_all(paths: PathResolver, root: Path) -> None:
    (root / ".vscode").symlink_to(".")
    (root / ".idea").symlink_to("..")
    (root / ".claude").symlink_to(".claude")

    assert not paths.locate("src/main.py").is_protected


def test_protected_roots_are_protected_as_a_whole(root: Path) -> None:
    own = root.parent / "panpan-home"
    own.mkdir()
    (root.parent / "alias").symlink_to(own)
    paths = PathResolver(root, extra_roots=[root.parent], protected_roots=[root.parent / "alias"])

    assert paths.locate(str(own / "settings.toml")).is_protected
    assert not paths.locate(str(root.parent / "panpan-home-too")).is_protected


def test_workspace_below_an_agent_folder_is_not_all_protected(tmp_path: Path) -> None:
    root = tmp_path / ".claude" / "worktrees" / "one"
    root.mkdir(parents=True)
    paths = PathResolver(root, home=tmp_path)

    assert not paths.locate("src/main.py").is_protected
    assert paths.locate(".claude/settings.json").is_protected
    assert paths.locate("../../settings.json").is_protected


@pytest.mark.parametrize("name", [".git", ".ssh"])
def test_git_and_key_folders_are_protected_as_workspaces(name: str, tmp_path: Path) -> None:
    root = tmp_path / name / "inside"
    root.mkdir(parents=True)

    assert PathResolver(root, home=tmp_path).locate("anything").is_protected


def test_name_that_straddles_the_root_is_protected(tmp_path: Path) -> None:
    root = tmp_path / ".github"
    root.mkdir()
    paths = PathResolver(root, home=tmp_path)

    assert paths.locate("workflows/ci.yml").is_protected
    assert not paths.locate("ISSUE_TEMPLATE.md").is_protected


@given(name=st.sampled_from(sorted(name for name, _ in plain_names())), data=st.data())
def test_protected_name_stays_closed_in_any_case_and_depth(name: str, data: st.DataObject) -> None:
    before = data.draw(st.lists(st.sampled_from(["a", "b.c", "src"]), max_size=3))
    after = data.draw(st.lists(st.sampled_from(["x", "y.z", "..."]), max_size=3))
    spelled = "".join(char.upper() if data.draw(st.booleans()) else char for char in name)

    path = Path("/", *before, *spelled.split("/"), *after)

    assert next(protections(path), None) is not None


def test_protected_groups_have_reasons() -> None:
    assert all(group.reason and group.names for group in PROTECTED_GROUPS)
    assert len({group.reason for group in PROTECTED_GROUPS}) == len(PROTECTED_GROUPS)


@given(
    st.sampled_from([name for group in PROTECTED_GROUPS if group.is_secret for name in group.names]),
    st.text("aB.", max_size=3),
)
def test_quick_check_misses_no_secret(name: str, ending: str) -> None:
    path = Path("/", name.replace("*", ending)) if "*" in name else Path("/", name.upper())

    assert may_name_secrets(path.name) or not holds_secrets(path)
    assert not may_name_secrets("main.py")
    assert not holds_secrets(Path("/w/.env.example"))


def test_wildcard_names_have_the_words_of_the_quick_check() -> None:
    wild = [name for group in PROTECTED_GROUPS for name in group.names if "*" in name.split("/")[0]]
    assert wild
    assert all("." in name.split("/")[0] for name in wild)


@pytest.mark.parametrize(
    "text",
    [
        "/proc/self", "/proc/self/environ", "/proc/thread-self/mem", "/proc/self/root/etc/hosts", "/proc/self/cwd/a",
        "/proc/1/environ", "/proc/1/mem", "/proc/1/task/1/environ", "/dev/fd/../environ", "link", "link/environ",
        "/proc/{own}", "/proc/{own}/status", "//proc/./{own}/maps",
    ],
)  # fmt: skip
def test_panpan_processes_are_closed_to_reading(text: str, root: Path, paths: PathResolver) -> None:
    (root / "link").symlink_to("/proc/self")

    location = paths.locate(text.replace("{own}", str(os.getpid())))

    assert location.is_secret
    assert location.is_protected


@pytest.mark.parametrize("name", ["environ", "mem", "fd/3", "task/7/environ"])
def test_processes_are_closed_where_proc_is_mounted_again(name: str, root: Path, paths: PathResolver) -> None:
    process = root / "host" / "proc" / "7"
    for folder in (process, process / "task" / "7"):
        folder.mkdir(parents=True)
        (folder / "oom_score_adj").write_text("0\n")

    assert paths.locate(str(process / name)).is_secret
    assert not paths.locate(str(process / "status")).is_secret
    assert not paths.locate(str(root / "host" / "environ")).is_secret


@pytest.mark.parametrize(
    "text", ["/proc/cpuinfo", "/proc/1/status", "/dev/stderr", "/dev/stdin", "/dev/fd/1", "proc/self"]
)
def test_streams_and_the_rest_of_proc_are_no_secrets(text: str, paths: PathResolver) -> None:
    assert not paths.locate(text).is_secret
