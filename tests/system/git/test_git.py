import os
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.git.git import run_git
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on
from tests.system.git.hostile_repository import PLAIN_ENV, HostileRepository, git


@pytest.fixture
def repository(tmp_path: Path) -> HostileRepository:
    return HostileRepository(tmp_path / "repository", tmp_path / "traces")


def with_fsmonitor(repository: HostileRepository) -> None:
    repository.configure("core.fsmonitor", str(repository.helper_script("fsmonitor")))


def with_clean_filter(repository: HostileRepository) -> None:
    repository.attributes("*.txt filter=evil")
    repository.configure("filter.evil.clean", repository.helper("clean"))
    repository.configure("filter.evil.required", "true")


def with_odd_filter_name(repository: HostileRepository) -> None:
    repository.attributes("*.txt filter=e.v=il")
    repository.configure("filter.e.v=il.clean", repository.helper("clean"))


def with_filter_process(repository: HostileRepository) -> None:
    repository.attributes("*.txt filter=evil")
    repository.configure("filter.evil.process", repository.helper("process", "exit 1"))


def with_included_filter(repository: HostileRepository) -> None:
    repository.attributes("*.txt filter=evil")
    (repository.folder / ".git" / "more").write_text(f'[filter "evil"]\n clean = "{repository.helper("clean")}"\n')
    repository.configure("include.path", "more")


def with_worktree_filter(repository: HostileRepository) -> None:
    repository.attributes("*.txt filter=evil")
    repository.configure("extensions.worktreeConfig", "true")
    git(repository.folder, "config", "--worktree", "filter.evil.clean", repository.helper("clean"))


def with_pager(repository: HostileRepository) -> None:
    repository.configure("core.pager", repository.helper("pager"))
    for command in ("status", "diff", "log", "show", "branch"):
        repository.configure(f"pager.{command}", repository.helper("pager"))


def with_external_diff(repository: HostileRepository) -> None:
    repository.configure("diff.external", str(repository.helper_script("external-diff")))


def with_diff_driver(repository: HostileRepository) -> None:
    repository.attributes("*.txt diff=evil")
    repository.configure("diff.evil.command", str(repository.helper_script("diff-command")))


def with_text_conversion(repository: HostileRepository) -> None:
    repository.attributes("*.txt diff=evil")
    repository.configure("diff.evil.textconv", str(repository.helper_script("textconv")))


def with_hooks(repository: HostileRepository) -> None:
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        repository.helper_script(hook, repository.folder / ".git" / "hooks")


def with_hooks_path(repository: HostileRepository) -> None:
    repository.helper_script("post-index-change", repository.folder / "hooks")
    repository.configure("core.hooksPath", "hooks")


def with_configured_hook(repository: HostileRepository) -> None:
    for event in ("post-index-change", "reference-transaction"):
        git(repository.folder, "config", "--add", "hook.e.v=il.event", event)
    repository.configure("hook.e.v=il.command", repository.helper("configured-hook"))


def with_other_programs(repository: HostileRepository) -> None:
    for key in (
        "core.editor",
        "sequence.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "gc.recentObjectsHook",
        "trailer.sign.command",
        "trailer.sign.cmd",
        "difftool.evil.cmd",
        "mergetool.evil.cmd",
        "man.evil.cmd",
        "browser.evil.cmd",
        "tar.evil.command",
        "credential.helper",
    ):
        repository.configure(key, repository.helper(key.replace(".", "-")))
    for key in ("diff.tool", "merge.tool", "man.viewer", "help.browser"):
        repository.configure(key, "evil")


def with_signature_program(repository: HostileRepository) -> None:
    repository.configure("log.showSignature", "true")
    for key in ("gpg.program", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program"):
        repository.configure(key, str(repository.helper_script("gpg")))
    head = git(repository.folder, "cat-file", "commit", "HEAD")
    headers, _, message = head.partition("\n\n")
    seal = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=repository.folder,
        env=PLAIN_ENV,
        input=f"{headers}\n{seal}\n\n{message}".encode(),
        capture_output=True,
        check=True,
    )
    git(repository.folder, "update-ref", "refs/heads/main", made.stdout.decode().strip())


def with_alias(repository: HostileRepository) -> None:
    for command in ("status", "diff", "log", "show", "branch", "rev-parse"):
        repository.configure(f"alias.{command}", f"!{repository.helper('alias')}")


def with_merge_driver(repository: HostileRepository) -> None:
    folder = repository.folder
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "-b", "side")
    (folder / "file.txt").write_text("side\n")
    git(folder, "commit", "-q", "-a", "-m", "side")
    git(folder, "checkout", "-q", "main")
    (folder / "file.txt").write_text("main\n")
    git(folder, "commit", "-q", "-a", "-m", "main")
    git(folder, "merge", "-q", "-s", "ours", "side")
    git(folder, "stash", "drop")
    repository.attributes("*.txt merge=evil")
    repository.configure("merge.evil.driver", repository.helper("merge-driver", "false"))
    repository.configure("log.diffMerges", "remerge")


def with_hostile_submodule(repository: HostileRepository) -> None:
    inner = HostileRepository(repository.folder / "inner", repository.folder.parent / "inner-traces")
    inner._trace_folder = repository._trace_folder
    url = '[submodule "inner"]\n path = inner\n url = ./inner\n ignore = none\n'
    (repository.folder / ".gitmodules").write_text(url)
    for number in range(2):
        git(inner.folder, "commit", "-q", "--allow-empty", "-m", f"inner {number}")
        git(repository.folder, "add", ".gitmodules", "inner")
        git(repository.folder, "commit", "-q", "-m", f"outer {number}", ".gitmodules", "inner")
    with_fsmonitor(inner)
    with_clean_filter(inner)
    with_hooks(inner)
    with_text_conversion(inner)
    repository.configure("submodule.inner.ignore", "none")
    repository.configure("diff.ignoreSubmodules", "none")
    repository.configure("status.submoduleSummary", "true")
    repository.configure("diff.submodule", "diff")


def with_lazy_fetch(repository: HostileRepository) -> None:
    blob = git(repository.folder, "rev-parse", "HEAD:file.txt").strip()
    (repository.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    repository.configure("core.repositoryFormatVersion", "1")
    repository.configure("extensions.partialClone", "origin")
    repository.configure("remote.origin.promisor", "true")
    repository.configure("remote.origin.url", f"ext::{repository.helper_script('remote-helper')}")
    repository.configure("protocol.ext.allow", "always")
    repository.configure("protocol.allow", "always")
    repository.configure("core.sshCommand", repository.helper("ssh", "true"))


HOSTILE: dict[str, Callable[[HostileRepository], None]] = {
    name.removeprefix("with_"): function for name, function in dict(globals()).items() if name.startswith("with_")
}

QUESTIONS = (
    ("status", "--porcelain=v2", "--branch"),
    ("status", "-v", "-v"),
    ("diff",),
    ("diff", "--cached"),
    ("diff", "--stat", "HEAD"),
    ("diff", "--submodule=diff", "HEAD"),
    ("diff-files", "-p"),
    ("diff-index", "-p", "HEAD"),
    ("log", "-p", "-m", "-1"),
    ("show", "-m", "HEAD"),
    ("log", "-p", "-1", "--format=%H %s %G?"),
    ("log", "--oneline", "-5"),
    ("show", "HEAD"),
    ("show", "HEAD:file.txt"),
    ("blame", "file.txt"),
    ("grep", "one"),
    ("branch", "--show-current"),
    ("rev-parse", "--show-toplevel"),
    ("ls-files", "--modified", "--others", "--exclude-standard"),
    ("describe", "--always"),
    ("cat-file", "--filters", "HEAD:file.txt"),
    ("shortlog", "-s", "HEAD"),
    ("log", "-1", "--format=%(trailers) %N %d"),
    ("for-each-ref", "--format=%(contents) %(trailers) %(describe)"),
    ("tag", "--list"),
    ("check-ignore", "file.txt"),
)


@pytest.mark.parametrize("make_hostile", HOSTILE.values(), ids=HOSTILE.keys())
async def test_git_runs_no_helper_that_the_repository_names(
    make_hostile: Callable[[HostileRepository], None], repository: HostileRepository
) -> None:
    make_hostile(repository)

    for question in QUESTIONS:
        await run_git(question, cwd=repository.folder)

    assert repository.traces == set()


@pytest.mark.parametrize(
    "name",
    ["fsmonitor", "clean_filter", "odd_filter_name", "filter_process", "included_filter", "worktree_filter",
     "external_diff", "diff_driver", "text_conversion", "hooks", "hooks_path", "signature_program",
     "hostile_submodule", "merge_driver", "lazy_fetch"],
)  # fmt: skip
def test_hostile_repositories_run_their_helper_in_plain_git(name: str, repository: HostileRepository) -> None:
    HOSTILE[name](repository)

    for question in QUESTIONS:
        subprocess.run(
            ["git", *question], cwd=repository.folder, env=PLAIN_ENV, check=False, capture_output=True, timeout=20
        )

    assert repository.traces != set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("cat-file", "--textconv", "HEAD:file.txt"),
        ("cat-file", "--text", "HEAD:file.txt"),
        ("diff", "--ext-diff"),
        ("describe", "--dirty"),
        ("log", "-p", "--ext"),
        ("status", "--ignore-submodules=none"),
        ("grep", "-Osh", "x"),
        ("log", "--help"),
        ("log", "--hel"),
        ("fetch",),
        ("checkout", "HEAD"),
        ("-C", "/", "status"),
        (),
    ],
)
async def test_git_refuses_forms_that_could_run_a_helper_or_write(arguments: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^git "):
        await run_git(arguments, cwd=tmp_path)


@on_both_backends
def test_git_answers_questions(backend: str, repository: HostileRepository) -> None:
    async def main() -> None:
        status = await run_git(["status", "--porcelain"], cwd=repository.folder)
        difference = await run_git(["diff", "--", "file.txt"], cwd=repository.folder)
        branch = await run_git(["rev-parse", "--abbrev-ref", "HEAD"], cwd=repository.folder)

        assert status.stdout == b" M file.txt\n M picture.bin\n"
        assert difference.stdout.endswith(b"-one\n+two\n")
        assert branch.stdout == b"main\n"

    run_on(backend, main)


async def test_git_questions_change_nothing_in_the_repository(repository: HostileRepository) -> None:
    # A file with its old content and a new time is what a refresh would note in the index.
    (repository.folder / "file.txt").write_text("one\n")
    os.utime(repository.folder / "file.txt", (1, 1))
    before = tree_of(repository.folder)

    for question in QUESTIONS:
        await run_git(question, cwd=repository.folder)

    assert tree_of(repository.folder) == before


async def test_git_variables_do_not_lead_it_elsewhere(
    repository: HostileRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = HostileRepository(tmp_path / "other", tmp_path / "other-traces")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(repository.helper_script("external-diff")))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor={repository.helper_script('fsmonitor')}'")

    top = await run_git(["rev-parse", "--show-toplevel"], cwd=repository.folder)
    await run_git(["diff"], cwd=repository.folder)

    assert top.stdout.decode().strip() == str(repository.folder)
    assert repository.traces == set()


@pytest.mark.parametrize("place", ["/etc", ".."])
async def test_git_does_not_ask_a_repository_with_files_elsewhere(
    place: str, repository: HostileRepository, tmp_path: Path
) -> None:
    repository.configure("core.worktree", place if place != ".." else str(tmp_path))

    with pytest.raises(ToolError, match="says that its files are in"):
        await run_git(["status"], cwd=repository.folder)


async def test_git_asks_a_repository_that_names_its_own_place(repository: HostileRepository) -> None:
    repository.configure("core.worktree", str(repository.folder))

    assert (await run_git(["status", "--porcelain"], cwd=repository.folder)).stdout == b" M file.txt\n M picture.bin\n"


async def test_git_hooks_of_configuration_files_are_switched_off(repository: HostileRepository) -> None:
    with_configured_hook(repository)

    # An empty event takes back those before it (git-config(1), since 2.54).
    events = await run_git(["config", "--get-all", "hook.e.v=il.event"], cwd=repository.folder)
    enabled = await run_git(["config", "--get", "hook.e.v=il.enabled"], cwd=repository.folder)

    assert events.stdout.endswith(b"reference-transaction\n\n")
    assert enabled.stdout == b"false\n"


async def test_git_does_not_believe_a_bare_repository_among_files(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    bare = tmp_path / "innocent"
    bare.mkdir()
    git(bare, "init", "-q", "--bare")

    answer = await run_git(["rev-parse", "--git-dir"], cwd=bare)

    assert answer.exit_code != 0


async def test_git_is_never_a_program_in_the_folder(
    repository: HostileRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.helper_script("git", repository.folder / "bin")
    repository.helper_script("git", repository.folder)
    monkeypatch.chdir(repository.folder)
    monkeypatch.setenv("PATH", f"{repository.folder / 'bin'}:.::bin:{os.environ['PATH']}")

    answer = await run_git(["rev-parse", "--is-inside-work-tree"], cwd=repository.folder)

    assert answer.stdout == b"true\n"
    assert repository.traces == set()


async def test_git_missing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ToolError, match="git is not installed"):
        await run_git(["status"], cwd=tmp_path)


async def test_git_exit_code_tells_that_there_is_no_repository(tmp_path: Path) -> None:
    need("git")

    answer = await run_git(["status"], cwd=tmp_path)

    assert answer.exit_code == 128
    assert b"not a git repository" in answer.stderr


def tree_of(folder: Path) -> dict[str, str]:
    """Return the digest of every file and the target of every link below `folder`."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }
