"""A rule that denies a command is seen where another program is given that command to run."""

from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask, Deny
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash

KNOWN_RUNNERS = [
    "setpriv --reuid 1 rm x", "sshpass -p a rm x", "cgexec -g cpu:x rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "ld-musl-x86_64.so.1 /bin/rm x", "sudo setpriv --reuid 1 rm x", "kubectl exec pod -- rm x",
    "kubectl exec pod -c y -- sh -c 'rm x'", "valgrind rm x", "sed '1e rm x' a", "sed -n 'e rm x' a",
    "sed -e '/a/e rm x' b", "sed '$e rm x' b", "sed 's/.*/rm x/e' b", "sed -E 's|.*|rm x|ge' b",
    "sed -n '1{e rm x\n}' b", "tar xf a.tar --to-command='rm x'", "tar xf a.tar --to-command=rm",
    "tar xf a.tar --to-com 'rm x'", "tar cf a.tar b --checkpoint=1 --checkpoint-action=exec='rm x'",
    "tar cf a b --checkpoint-action 'exec=rm x'", "tar -I 'rm x' -xf a", "tar --use-compress-program='rm x' -xf a",
    "tar xf a -F 'rm x'", "find . -delete", "find src -name '*.py' -delete", "/usr/bin/find . -delete",
    "vim -c '!rm x'", "vim -es '+!rm x' +q", "nvim -c ':!rm x' a", "vim -c 'call system(\"rm x\")'",
    "gdb -ex 'shell rm x' -batch", "gdb -batch -ex '!rm x'", "expect -c 'spawn rm x'", "ed <<< '!rm x'",
    "ed a <<< '!rm x'", "ex -s <<< '!rm x'", "ed <<END\n!rm x\nEND", "echo '!rm x' | ed", "PAGER='rm x' git log",
    "EDITOR=rm git commit", "GIT_SSH_COMMAND='rm x' git fetch", "MANPAGER=\"rm x\" man ls",
    "GIT_EXTERNAL_DIFF='rm x' git diff", "env GIT_EDITOR='rm x' git commit", "export PAGER='rm x'; git log",
    "scp -S rm a b:c", "scp -S /bin/rm a b:c", "sort --compress-program='rm x' a", "sort --compress-program=rm a",
    "rg --pre rm x .",
]  # fmt: skip
UNKNOWN_RUNNERS = [
    "awk 'BEGIN { system(\"rm x\") }'", "perl -e 'system \"rm x\"'", "python -c \"import os; os.system('rm x')\"",
    "mytool --on-done 'rm x'", "mytool --on-done='rm x'", "watchexec -e py 'rm x'", "FOO='rm x' make",
    "FOO=rm make", "sqlite3 a '.shell rm x'", "psql -c '\\! rm x'", "man -P 'rm x' ls", "less '+!/bin/rm x' a",
    "zip a b -T -TT 'rm x'", "nice mytool 'a; rm x'", "mytool $'rm\\tx'",
]  # fmt: skip
TEXTS = [
    "echo 'rm x'", "git commit -m 'rm x from the list'", "grep -rn 'rm x' src", "sed -n 's/rm x/y/p' a",
    "sed 's/a/e/' a", "tar cf a.tar b", "tar xzf a.tgz", "vim a", "find . -name '*.py'", "make", "FOO=1 make",
    "PAGER=cat git log", "python -c 'print(1)'", "kubectl get pods", "gdb ./a",
    "gh pr create --title 'rm x' --body 'rm x too'", "mkdir 'rm x'", "sed -i 's/rm x/rm y/' a",
    "sed -e 's/a/b/;s/the rm/x/' b", "cat 'a b'", "sed -E 's/.*/<e x>/' a", "npm test", "sort -k 2 a", "scp a b:c",
    "mytool 'remove rmx'", "mytool 'alarm x'",
]  # fmt: skip


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> FolderGate:
    return Project(tmp_path_factory.mktemp("gate")).gate('[permission]\ndeny = ["Bash(rm *)"]')


@pytest.mark.parametrize("line", KNOWN_RUNNERS)
def test_known_runner_of_a_denied_command_is_denied(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "bypassPermissions"), Deny)


@pytest.mark.parametrize("line", UNKNOWN_RUNNERS)
def test_unknown_runner_of_a_denied_command_is_not_allowed(gate: FolderGate, line: str) -> None:
    assert not isinstance(bash(gate, line, "bypassPermissions"), Allow)


def test_word_that_may_be_a_command_is_asked_about(gate: FolderGate) -> None:
    assert isinstance(bash(gate, "mytool --on-done='rm x'", "bypassPermissions"), Ask)


@pytest.mark.parametrize("line", TEXTS)
def test_mere_text_is_no_command(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "bypassPermissions"), Allow)


def test_runners_are_not_asked_about_without_a_rule(tmp_path: Path) -> None:
    gate = Project(tmp_path).gate()

    for line in (*KNOWN_RUNNERS, *UNKNOWN_RUNNERS):
        if "-delete" not in line:  # which takes protected places with it
            assert isinstance(bash(gate, line, "bypassPermissions"), Allow), line
