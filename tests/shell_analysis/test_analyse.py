"""Effects of whole command lines."""

import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.shell_analysis.judge import analyse, analyse_for_shell

ALLOWED: dict[str, tuple[str, ...]] = {
    "ls": (".",),
    "ls -la": (".",),
    "ls -lhtr --color=never src": ("src",),
    "ls src docs": ("src", "docs"),
    "ls -R1 .": (".",),
    "cat a.txt": ("a.txt",),
    "cat -n a.txt b.txt": ("a.txt", "b.txt"),
    "cat -- -n": ("-n",),
    "cat 'a.txt'": ("a.txt",),
    "head -20 a.txt": ("a.txt",),
    "head -n 5 a.txt": ("a.txt",),
    "head -n5 -q a.txt b.txt": ("a.txt", "b.txt"),
    "head --lines=5 a.txt": ("a.txt",),
    "tail -c 10 a.txt": ("a.txt",),
    "tail -n +2 a.txt": ("a.txt",),
    "wc -l a.txt": ("a.txt",),
    "pwd": (),
    "pwd -P": (),
    "echo -e 'a b' --flag": (),
    "true": (),
    "grep foo a.txt": ("a.txt",),
    "grep -rn --include='*.py' foo src": ("src",),
    "grep -e foo -e bar a.txt": ("a.txt",),
    "grep -iE -A3 'a|b' a.txt": ("a.txt",),
    "grep -c foo a.txt b.txt": ("a.txt", "b.txt"),
    "rg foo": (".",),
    "rg -n foo src": ("src",),
    "rg --files -g '*.py' src": ("src",),
    "rg -tpy -C2 foo": (".",),
    "find . -name '*.py' -type f": (".",),
    "find src -maxdepth 2 -not -name x -print0": ("src",),
    "find . \\( -name a -o -name b \\) -size +1k": (".",),
    "sed -n 1,2p a.txt": ("a.txt",),
    "sed -n '1p;$p' a.txt": ("a.txt",),
    "sort a.txt": ("a.txt",),
    "sort -t: -k2,2n -u a.txt": ("a.txt",),
    "uniq -c a.txt": ("a.txt",),
    "cut -d, -f1 a.txt": ("a.txt",),
    "tr -d '\\r'": (),
    "tr a-z A-Z": (),
    "cmp a.txt b.txt": ("a.txt", "b.txt"),
    "stat a.txt": ("a.txt",),
    "stat -c %s a.txt": ("a.txt",),
    "file a.txt": ("a.txt",),
    "du -sh src": ("src",),
    "df -h .": (".",),
    "basename src/a.py .py": (),
    "dirname src/a.py": (),
    "realpath a.txt": ("a.txt",),
    "readlink -f a.txt": ("a.txt",),
    "date +%F": (),
    "date -u": (),
    "uname -a": (),
    "which ls": (),
    "type ls": (),
    "nproc": (),
    "seq 1 3": (),
    "md5sum a.txt": ("a.txt",),
    "od -c -N 16 a.txt": ("a.txt",),
    "nl -ba a.txt": ("a.txt",),
    "comm -12 a.txt b.txt": ("a.txt", "b.txt"),
    "paste -d, a.txt b.txt": ("a.txt", "b.txt"),
    "cat a.txt | grep x | sort -rn | uniq -c | head -5": ("a.txt",),
    "ls src && cat a.txt": ("src", "a.txt"),
    "ls nowhere 2>/dev/null": ("nowhere",),
    "ls nowhere 2>&1 | head": ("nowhere",),
    "cat a.txt | wc -l 2> /dev/null": ("a.txt",),
    "cd src && ls": ("src",),
    "cd src && cat a.py ../a.txt": ("src", "src/a.py", "src/../a.txt"),
    "cat src/*.py": ("src",),
    "cat *.txt": (".",),
    "ls '*'*": (".",),
    "find . -newer a.txt": (".", "a.txt"),
    "git status": (".",),
    "git -C src log --oneline -- a.py": ("src/a.py", "src"),
    "git show HEAD:a.txt": ("HEAD:a.txt",),
    "git show HEAD:./a.txt": ("HEAD:./a.txt", "./a.txt"),
    "git log -L 1,2:a.txt": (".", "a.txt"),
    "git diff HEAD~1 a.txt": ("HEAD~1", "a.txt"),
    "cd src && git status": ("src",),
    "test -f a.txt && echo there": ("a.txt",),
    "wc -l < a.txt": ("a.txt",),
    "grep foo a.txt -n": ("a.txt", "-n"),
    "head a.txt -n 5": ("a.txt", "-n", "5"),
    "cat '~/x' a": ("./~/x", "a"),
    "grep foo -r": ("-r", "."),
    "timeout 5 cat a.txt": ("a.txt",),
    "time cat a.txt": ("a.txt",),
    "time -p cat a.txt | wc -l": ("a.txt",),
    "(cd src; ls)": ("src", "."),
    "(cd src && ls) && cat a.txt": ("src", "a.txt"),
    "{ cat a.txt; ls src; } | head": ("a.txt", "src"),
    "(cat a.txt) 2>/dev/null <b.txt": ("b.txt", "a.txt"),
    "[[ -f a.txt && $X == *.py ]] && cat b.txt": ("a.txt", "b.txt"),
    "[[ a.txt -nt b.txt ]]": ("a.txt", "b.txt"),
    "sleep 1; ls": (".",),
    "ls | tee /dev/null": (".",),
    'basename "$PWD"': (),
    "tar tzf a.tgz src": ("a.tgz",),
    "tar -t -f a.tgz": ("a.tgz",),
    "unzip -l a": ("a", "a.zip", "a.ZIP"),
    "bzcat a.bz2": ("a.bz2",),
    "zcat a": ("a", "a.gz", "a.z", "a-z", "a.Z"),
    "diff a.txt b.txt": ("a.txt", "b.txt"),
}
REFUSED = """
# writes
rm a
touch a
mkdir a
cp a b
mv a b
tee a
ls > a
echo x >a
cat a >> b
sort -o b a
sort a -o b
sort --output=b a
sort -ob a
uniq a b
uniq -c a b
uniq a -c
cat a | tee b
xxd a b
sed -i s/a/b/ a
sed s/a/b/w x
sed -n 'w out' a
sed -n '1e date' a
sed -n 1p -i a
sed -ni 1p a
find . -delete
find . -fprint x
find . -fls x
find . -fprintf x y
date -s 10:00
date 01010101
date --set=x
split a
csplit a 1
truncate -s0 a
dd if=a of=b
ln -s a b
chmod +x a
file -C -m x
sort -T /tmp a
shuf -o a b
patch a
ed a
printf -v x y
# executes
python a.py
node a.js
sh a
bash -c ls
eval ls
exec ls
env ls
xargs ls
sudo ls
time rm x
time -v ls
nice ls
nohup ls
command ls
builtin ls
source a
. a
find . -exec ls
find . -ok ls
find . -execdir ls
rg --pre=cat foo
rg --pre cat foo
rg --hostname-bin=x foo
rg -z foo
rg --search-zip x
sort --compress-program=x a
awk 1 a
perl -e 1
make
npm ls
pip list
less a
more a
man ls
vi a
./ls
/bin/ls
ls/ls
watch ls
parallel ls
ssh host ls
diff -l a b
column -e x
watch -n1 ls
coproc ls
function ls
alias ls=x
trap x EXIT
PATH=. ls
X=1 ls
# talks to others, waits, or shows what is not the workspace's
curl x
wget x
ping x
host x
dig x
nslookup x
getent hosts x
hostname -f
nc x 1
who
ls --hyperlink
tail -f a
tail -F a
tail --follow a
set
export
sleep 500
sleep 5m
ls -L
ls -H
ls --dereference
grep -R x .
grep --dereference-recursive x .
rg -L x
find -L .
find . -follow
du -L
df --sync x y -z
pushd src
jobs
history
read x
# names files in other ways
grep -f x y
grep --file=x y
rg -f x
rg --ignore-file=x y
wc --files0-from=x
sort --files0-from=x
du --files0-from=x
date -f x
date -r x
file -f x
md5sum -c x
sha256sum --check x
find -files0-from x
find . -samefile x
realpath --relative-to=x y
cat ''
# not understood
ls -Z
ls --nonsense
ls --col=x
ls --recur
head -n
head -n x a
head -n -f a
grep -m x y z
nosuchprogram
ls -w
find . -name
seq x
tr a b c
pwd x
cut -f
ls -\N{EN DASH}a
stat -q a
od -w8 a
od -w x
nproc x
"""
REFUSED_LINES = [line for line in REFUSED.splitlines() if line and not line.startswith("# ")]


@pytest.mark.parametrize("line", ALLOWED)
def test_looking_line_is_read_only_and_its_paths_are_named(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only
    assert facts.reads == ALLOWED[line]
    assert facts.writes == ()


@pytest.mark.parametrize("line", REFUSED_LINES)
def test_line_that_could_do_more_is_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


_LINES = st.sampled_from([*ALLOWED, *REFUSED_LINES])


@given(st.lists(_LINES, min_size=1, max_size=4), st.lists(st.sampled_from([" | ", "&&", " 2>&1 | "]), min_size=3))
def test_chain_is_read_only_only_if_all_its_parts_are(lines: list[str], joints: list[str]) -> None:
    chain = lines[0] + "".join(joint + line for joint, line in zip(joints, lines[1:], strict=False))

    if analyse(chain).is_read_only:
        assert all(analyse(line).is_read_only for line in lines)


@given(
    st.sampled_from([line for line in [*ALLOWED, *REFUSED_LINES] if line.replace(" ", "").replace("-", "").isalnum()])
)
def test_quoting_harmless_words_keeps_the_verdict(line: str) -> None:
    for quoted in ("'{}'", '"{}"', "''{}"):
        quoted_line = " ".join(quoted.format(word) for word in line.split())
        if not line.startswith("time "):  # a quoted `time` is a program
            assert analyse(quoted_line).is_read_only == analyse(line).is_read_only


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cd src; ls", ("src", ".")),
        ("cd src && ls; cat a.py", ("src", "a.py", "src/a.py")),
        ("cd src; cat ../a.txt /usr/x", ("src", "../a.txt", "/usr/x", "src/../a.txt")),
        ("cd src\ncat *.py", ("src", ".")),
        ("cd src; git log -- a.py", ("src", "a.py", "src/a.py")),
        ("cd src || exit; ls", ("src",)),
    ],
)
def test_reads_behind_an_uncertain_cd_include_both_folders(line: str, reads: Sequence[str]) -> None:
    facts = analyse(line)

    assert facts.is_read_only
    assert sorted(facts.reads) == sorted(reads)


def test_globs_behind_an_uncertain_cd_include_both_folders() -> None:
    assert analyse("cd src; cat *.py").effects[-1].placed_globs == ("*.py", "src/*.py")


@pytest.mark.parametrize(
    "line",
    ["LC_ALL=C sort a.txt", "LANG=C LC_ALL=C.UTF-8 ls", "GIT_PAGER=cat git log",
     "cat a.txt | LC_ALL=C sort 2>/dev/null", "COLUMNS=200 ps aux", "2>/dev/null PAGER=cat git diff"],
)  # fmt: skip
def test_harmless_variables_may_be_set(line: str) -> None:
    assert analyse(line).is_read_only


@pytest.mark.parametrize(
    "line",
    ["LC_ALL=C", "LC_ALL=C; ls", "LC_ALL=C > x", "LC_ALL=C | ls", "LC_ALL=C rm x", "LC_ALL=$X ls", "LC_ALL='C' ls",
     "LC_ALL+=C ls", "LC_ALL=C PATH=. ls", "GIT_PAGER=./x git log", "PAGER= git log", "LC_ALL=../x ls",
     "LD_PRELOAD=x ls", "LC_ALL=C ./ls", "TERM=x ls", "LOCPATH=. ls"],
)  # fmt: skip
def test_other_variables_and_values_may_not_be_set(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize("line", ["cd $X && ls", "cd $X; git branch", "cd; ls", "pushd src; ls"])
def test_line_led_to_an_unknown_place_is_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("git status", (".",)),
        ("cd src && git log | head", ("src",)),
        ("git -C src diff; git tag", ("src", ".")),
        ("cd src; git log", (".", "src")),
        ("ls", ()),
    ],
)
def test_git_folders_are_known(line: str, folders: Sequence[str]) -> None:
    assert analyse(line).git_folders == folders


def test_needed_environment_is_that_of_all_parts() -> None:
    needed = analyse("cd src && rg foo | head; go version").needed_environment

    assert needed == {"CDPATH": None, "OLDPWD": None, "RIPGREP_CONFIG_PATH": None, "GOTOOLCHAIN": "local"}


@pytest.mark.parametrize("line", ALLOWED)
def test_line_run_without_bash_is_not_read_only(line: str) -> None:
    assert analyse_for_shell("/usr/local/bin/bash", "", line).is_read_only
    assert not analyse_for_shell("/bin/sh", "", line).is_read_only


@given(st.text(max_size=40))
def test_analyse_takes_any_text(text: str) -> None:
    facts = analyse(text)

    assert len(facts.effects) == len(facts.line.commands)


def test_analysis_is_imported_with_the_first_command() -> None:
    code = "import sys, panpan.app; print(*sorted(name for name in sys.modules if 'shell_analysis.' in name))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    light = ["facts", "guesses", "working_directory"]
    assert done.stdout.split() == [f"panpan.shell_analysis.{name}" for name in light]
