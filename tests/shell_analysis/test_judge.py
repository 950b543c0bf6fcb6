import pytest

from panpan.shell_analysis.facts import Effect, Redirect, SimpleCommand, Word
from panpan.shell_analysis.judge import analyse, judge


def only(line: str) -> Effect:
    [effect] = analyse(line).effects
    return effect


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("rm -rf build *.pyc", (), ("build", ".")),
        ("rm -f -- -x", (), ("-x",)),
        ("touch -d yesterday a b", (), ("a", "b")),
        ("touch -r a b", ("a",), ("b",)),
        ("mkdir -p -m 700 a/b", (), ("a/b",)),
        ("cp -r a b c", ("a", "b"), ("c",)),
        ("cp -t c a b", ("a", "b"), ("c",)),
        ("cp --target-directory=c a", ("a",), ("c",)),
        ("mv a b", ("a", "b"), ("a", "b")),
        ("ln -s a b", ("a",), ("b",)),
        ("ln -s ../a", (), (".",)),
        ("tee -a a b", (), ("a", "b")),
        ("dd if=a of=b bs=1", ("a",), ("b",)),
        ("truncate -s 0 a", (), ("a",)),
        ("chmod -R +x a b", (), ("a", "b")),
        ("chown --reference=a b", ("a",), ("b",)),
        ("sed -i s/a/b/ a", (), ("a",)),
        ("sed -i -e s/a/b/ a", (), ("a",)),
        ("/bin/rm a", (), ("a",)),
        ("sudo rm a", (), ("a",)),
        ("nice -n 5 rm a", (), ("a",)),
        ("env X=1 rm a", (), ("a",)),
        ("timeout -k 1 5 rm a", (), ("a",)),
        ("git add a", (".",), (".",)),
        ("git -C sub commit -m x", ("sub",), ("sub",)),
        ("echo x > a", (), ("a",)),
        ("cat a >> b < c", ("a", "c"), ("b",)),
    ],
)
def test_effect_names_the_paths_of_a_command(line: str, reads: object, writes: object) -> None:
    effect = only(line)

    assert not effect.is_read_only
    assert (effect.reads, effect.writes) == (reads, writes)


def test_paths_behind_cd_start_where_the_line_does() -> None:
    assert analyse("cd sub && rm a").writes == ("sub/a",)
    assert analyse("cd sub; rm a /x").effects[-1].placed_writes == ("a", "/x", "sub/a")
    assert analyse("cd $X; rm a /x").effects[-1].placed_writes is None


@pytest.mark.parametrize(
    "line",
    [
        "rm $X",
        "xargs rm",
        "cp a $X",
        "sudo $X",
        "make",
        "nosuchprogram x",
        "./rm a",
        "sed -i s/a/b/ $X",
        "sed -i 'w x' a",
        "sed -i -f x a",
        "sed -i.bak s/a/b/ a",
        "git clone x",
        "git --work-tree=/x checkout .",
        "git diff --output=/x",
        "find . -delete",
        "dd of=$X",
        "sudo -i",
        "env -S 'rm x'",
    ],
)
def test_uncertain_writes_are_unknown(line: str) -> None:
    assert analyse(line).effects[0].writes is None


@pytest.mark.parametrize(
    "line",
    [
        "python a.py",
        "bash -c ls",
        "make",
        "npm test",
        "pytest",
        "cargo build",
        "eval ls",
        "awk 1",
        "env ls",
        "xargs ls",
        "sudo ls",
        "git commit",
        "find . -exec make {} +",
        "nohup ls",
        "ssh x ls",
        "nice ls",
        "pip install x",
        "less a",
    ],
)
def test_command_that_runs_other_code_is_marked(line: str) -> None:
    assert only(line).runs_code is True


@pytest.mark.parametrize(
    "line",
    [
        "curl x",
        "wget x",
        "git push",
        "git fetch",
        "git pull",
        "git clone x",
        "git -C x ls-remote",
        "pip install x",
        "pip3 install x",
        "python -m pip install x",
        "python3.12 -m pip download x",
        "npm ci",
        "ssh x",
        "sudo apt-get update",
        "timeout 5 curl x",
        "docker pull x",
        "uv sync",
        "/usr/bin/curl x",
    ],
)
def test_command_that_uses_the_network_is_marked(line: str) -> None:
    assert only(line).uses_network is True


@pytest.mark.parametrize("line", ["nosuchprogram", "make", "python a.py", "npm test", "git commit -m x", "pip list"])
def test_possible_network_use_is_unknown(line: str) -> None:
    assert only(line).uses_network is None


@pytest.mark.parametrize("line", ["/bin/ls", "./ls", "bin/ls", "~/ls", "$X", "'' x"])
def test_program_without_a_plain_name_is_never_harmless(line: str) -> None:
    assert not only(line).is_read_only


def test_timeout_is_as_harmless_as_its_command_if_plain() -> None:
    assert only("timeout 5 ls").is_read_only
    assert only("timeout 2.5s timeout 1 ls").is_read_only
    assert not only("timeout 5 rm x").is_read_only
    assert not only("timeout -k 1 5 ls").is_read_only
    assert not only("timeout x ls").is_read_only
    assert not only("timeout 5").is_read_only
    assert not only(f"{'timeout 1 ' * 50}ls").is_read_only


def test_path_like_words_include_every_possible_path() -> None:
    assert only("make -C sub X=../y --file=z 'a b' *.c").path_like_words == (
        "sub", "X=../y", "../y", "z", "a b", "a", "b", ".",
    )  # fmt: skip
    assert only("rm $X .git/config > log").path_like_words == (".git/config", "log")


@pytest.mark.parametrize(
    "words",
    [
        "-d @.env",
        "-d@.env",
        "--data=@.env",
        "--data-binary @.env",
        "-F f=@.env",
        "-F 'f=@.env;type=text/plain'",
        "file:.env",
    ],
)
def test_path_like_words_include_a_file_behind_a_sign(words: str) -> None:
    assert ".env" in only(f"curl {words} http://example.org").path_like_words


def test_glob_is_named_with_its_folder() -> None:
    effect = only("cat src/*.py 'a b'/[xy] '*'?")

    assert effect.reads == ("src", "a b", ".")
    assert effect.read_details.globs == ("src/*.py", "a b/[xy]", "\\*?")


@pytest.mark.parametrize("line", ["sort *", "rg x *.py", "find *", "tail ?", "sed -n 1p [ab]*", "diff * b"])
def test_glob_that_may_match_a_harmful_flag_is_refused(line: str) -> None:
    assert not only(line).is_read_only


def test_searches_are_told_from_lists_of_names() -> None:
    assert only("grep -rn x src").search.folders == ("src",)
    assert only("grep x src").search.folders == ()
    assert only("rg x").search.folders == (".",)
    assert only("git log -p").search.folders == (".",)
    assert only("git log").search.folders == ()
    assert only("ls -R src").search.folders == ()
    assert only("diff a b").search.follows_links


def test_variables_set_for_a_command_make_it_unknown() -> None:
    ls = (Word("ls", "ls"),)

    assert judge(SimpleCommand("ls", ls)).is_read_only
    assert not judge(SimpleCommand("X=1 ls", ls, assignments=("X",))).is_read_only
    assert not judge(SimpleCommand("X=1", (), assignments=("X",))).is_read_only


def test_redirects_count_for_any_program() -> None:
    words = (Word("ls", "ls"),)
    unknown = judge(SimpleCommand("ls > $X", words, (Redirect(Word("$X", None), is_write=True),)))
    known = judge(SimpleCommand("ls > x", words, (Redirect(Word("x", "x"), is_write=True),)))

    assert unknown.writes is None
    assert known.writes == ("x",)
    assert judge(SimpleCommand("> x", (), (Redirect(Word("x", "x"), is_write=True),))).writes == ("x",)


@pytest.mark.parametrize(
    "line",
    [
        "rm", "rm -", "rm -- -", "rm -rf -", "mkdir -", "rmdir -", "touch", "tee -", "cp - -", "dd",
        "sed -i s/a/b/", "sed -i s/a/b/ -", "timeout 5 rm -", "truncate -s 0 -",
    ],
)  # fmt: skip
def test_changing_program_is_never_read_only(line: str) -> None:
    assert not only(line).is_read_only
    assert only(line).writes != ()


def test_null_device_is_a_file_to_writers_only() -> None:
    assert only("grep foo a.txt /dev/null").reads == ("a.txt",)
    assert only("cat < /dev/null").is_read_only
    assert only("rm /dev/null").writes == ("/dev/null",)
    assert only("mv a /dev/null").writes == ("a", "/dev/null")
