"""Searches and copies of folders that hold a denied file, against all ways of writing a line around them."""

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.types.permission import Allow, PermissionMode
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash

RULES = '[permission]\nallow = ["Bash(*)"]\ndeny = ["Read(./secret/**)"]\n'
BEFORE = st.sampled_from([
    "", "V=1 ", "env ", "env -i V=1 ", "/usr/bin/env -S ", "nice -n 5 ", "timeout 5 ", "timeout --foreground 5 ",
    "command ", "exec ", "nohup ", "sudo ", "time ", "eval ", "busybox ", "strace -f ", "watch ", "frob --now ",
    "stdbuf -oL ", "setsid ",
])  # fmt: skip
AROUND = st.sampled_from([
    "@", "@ &", "@ | cat", "@ > out", "frob; @", "true && @", "! @", "{ @; }", "(@)", "if @; then :; fi",
    "while @; do break; done", "until @; do :; done", "for i in 1; do @; done", "for ((;;)); do @; done",
    "case x in x) @;; esac", "f() { @; }; f", "coproc @", "cd src/..; @", "X=$(@)", "cat <(@)", 'echo "`@`"',
])  # fmt: skip
QUOTED = st.sampled_from(["", "", "", "", "bash -c @", "eval @", "sh <<< @", "echo @ | bash", "timeout 5 sh -c @"])
OF_FOLDERS = [
    "grep -r x @", "grep -rn --include='*.txt' x @", "egrep -r x @", "rg x @", "rg --files-with-matches x @",
    "diff -r @ other", "tar c @", "tar -czf x.tgz @", "zip -r x.zip @",
    "cp -r @ out", "cp -a @/. out", "ln -s @ out", "rsync -a @ h:", "scp -r @ h:x", "frob @", "frob --from=@",
    "/opt/bin/7z a x.7z @",
]  # fmt: skip
OF_ALL = [
    "grep -r x", "grep -Rn x src/..", "rg x", "rg --weird x", "ag x", "ack x", "ugrep x", "rgrep x", "/opt/bin/rg x",
    "git grep x", "git log -p", "git diff", "git show --ext-diff", "git stash show -p", "git archive HEAD",
    "find . -type f -exec cat {} +", "cat */*", "head -n1 s*/s.txt", "wc -l ./*/*.txt", "tar c s*", "cp -r s* out",
    "frob */",
]  # fmt: skip


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> FolderGate:
    project = Project(tmp_path_factory.mktemp("gate"))
    for name in ("secret/s.txt", "src/c.txt", "a.txt"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("x")
    return project.gate(RULES)


def written(before: list[str], around: str, quoted: str, search: str) -> str:
    line = around.replace("@", "".join(before) + search)
    return quoted.replace("@", shlex.quote(line)) if quoted else line


@settings(max_examples=150, deadline=None)
@given(
    st.lists(BEFORE, max_size=2), AROUND, QUOTED, st.sampled_from([*OF_ALL, *(s.replace("@", ".") for s in OF_FOLDERS)])
)
def test_search_that_shows_a_denied_file_never_runs_unasked(
    gate: FolderGate, before: list[str], around: str, quoted: str, search: str
) -> None:
    line = written(before, around, quoted, search)

    for mode in ("default", "bypassPermissions"):
        assert not isinstance(bash(gate, line, mode), Allow), line  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(BEFORE.filter(lambda before: before != "/usr/bin/env -S "), max_size=2),
    AROUND.filter(lambda around: not around.startswith(("X", "cat <", "echo"))),
    st.sampled_from(OF_FOLDERS),
)
def test_search_of_a_folder_without_a_denied_file_runs(
    gate: FolderGate, before: list[str], around: str, search: str
) -> None:
    line = written(before, around, "", search.replace("@", "src"))

    assert isinstance(bash(gate, line, "bypassPermissions"), Allow), line


@pytest.mark.parametrize("runner", ["uv run ", "poetry run ", "npx ", "docker run -v .:/w x ", "npm exec -- "])
@pytest.mark.parametrize("search", ["rg x", "grep -r x .", "git grep x"])
def test_search_given_to_a_runner_counts(gate: FolderGate, runner: str, search: str) -> None:
    assert not isinstance(bash(gate, runner + search, "bypassPermissions"), Allow)


@pytest.mark.parametrize(
    "line",
    ["find . | cpio -o", "tar cTf names x.tar", "tar -c --files-from=names", "sort --files0-from=names", "zip x -@",
     "sudo xargs cat", "env find . -execdir cat {} +", "V=1 xargs cat < names"],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_names_outside_the_words_may_be_denied_ones(gate: FolderGate, line: str, mode: PermissionMode) -> None:
    assert not isinstance(bash(gate, line, mode), Allow)


@pytest.mark.parametrize(
    "line",
    [
        "ruff check .", "uv run mypy .", "python3.11 -m pytest .", "pip install -e .", "npm run build .", "go build .",
        "docker build -t x .", "cmake -S . -B build", "./run.sh .", "bash run.sh .", "git add .", "git push",
        "git commit -m 'rg x'", "git worktree list", "git clone https://h/x", "apt-get install -y rg git curl",
        "tar xzf a.tgz -C .", "tar cf x.tar TESTS", "unzip a.zip -d .", "rsync -a h:x .",
        "aws s3 cp s3://x .", "hf download x --local-dir .", "yq . a.yaml", "mkdir -p build && cp *.txt build",
        "PYTHONPATH=. frob", "frob src", "mv src lib", "for i in 1; do ls *; done", "cat * > out", "wc -l *.txt &",
    ],
)  # fmt: skip
def test_program_with_its_own_purpose_in_folders_runs(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "bypassPermissions"), Allow), line
