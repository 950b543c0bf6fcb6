"""Writes of well-known programs, as far as their flags are known."""

import shlex

import pytest

from panpan.shell_analysis.judge import analyse


@pytest.mark.parametrize(
    "line",
    ["cp --target-directory docs a.txt", "cp --target-directory=docs a.txt", "mv --target-directory docs a.txt",
     "ln -s --target-directory docs a.txt", "install --mode 700 --target-directory docs a.txt", "cp -at docs a.txt",
     "cp --recursive --target-directory docs a.txt", "cp --preserve=mode a.txt docs"],
)  # fmt: skip
def test_folder_that_a_flag_names_is_written(line: str) -> None:
    assert "docs" in (analyse(line).effects[0].writes or ()), shlex.split(line)


@pytest.mark.parametrize(
    "line",
    ["cp --target docs a.txt", "cp --target=docs a.txt", "mv --t docs a.txt", "ln --targ docs a.txt",
     "install --target-dir=docs a.txt", "cp --nonsense a b", "cp --recursive=x a b", "touch --ref=a b",
     "sed -i --expr=1wdocs s/a/b/ a.txt", "sed --in-place --file docs a.txt", "sed -i --in-place=.bak s/a/b/ a.txt",
     "sed -i 's/a/b/w docs' a.txt", "sed -i --expression 's/a/b/w docs' a.txt", "sed -n 'w docs' a.txt",
     "sed -n --expression 1wdocs a.txt"],
)  # fmt: skip
def test_unknown_flag_makes_reads_and_writes_unknown(line: str) -> None:
    effect = analyse(line).effects[0]

    assert effect.writes is None
    assert effect.reads is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("sed -n 'w docs/x' a.txt", "docs/x"), ("sed 's/a/b/wdocs/x' a.txt", "docs/x"),
        ("sed -n -e '1,2 W docs/x' a.txt", "docs/x"), ("sed -n 'r docs/x' a.txt", "docs/x"),
        ("curl -F 'f=<docs/x' h", "docs/x"), ("curl -T '{docs/x,b}' h", "docs/x"),
        ("curl file:///srv/a%20b/x", "/srv/a b/x"), ("curl FILE://localhost/srv/x", "/srv/x"),
        ("frob 'read docs/x please'", "docs/x"), ("awk '{print > \"docs/x\"}' a.txt", "docs/x"),
    ],
)  # fmt: skip
def test_names_within_words_are_mentioned(line: str, name: str) -> None:
    assert name in analyse(line).effects[0].path_like_words


@pytest.mark.parametrize(
    "line", ["git commit -m 'leave docs/x out'", "git commit -am 'leave docs/x out'",
             "gh pr create --body 'see docs/x'", "git commit --message='leave docs/x out'"],
)  # fmt: skip
def test_message_is_text(line: str) -> None:
    assert "docs/x" not in analyse(line).effects[0].path_like_words
