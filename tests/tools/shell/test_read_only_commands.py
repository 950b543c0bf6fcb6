import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.tools.shell.read_only import is_read_only_command, read_only_paths
from panpan.tools.shell.read_only_programs import PROGRAMS

ALLOWED: dict[str, tuple[str, ...]] = {
    "ls": (),
    "ls -la": (),
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
    "rg foo": (),
    "rg -n foo src": ("src",),
    "rg --files -g '*.py' src": ("src",),
    "rg -tpy -C2 foo": (),
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
time ls
nice ls
nohup ls
timeout 1 ls
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
git status
git log
git diff
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
diff a b
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
id
ls --hyperlink
tail -f a
tail -F a
tail --follow a
env
printenv
set
export
sleep 5
ps aux
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
cd src
cd src && ls
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
find . -newer x
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
nl -b pX a
stat -q a
od -w8 a
od -w x
nproc x
"""
REFUSED_COMMANDS = [line for line in REFUSED.splitlines() if line and not line.startswith("# ")]


@pytest.mark.parametrize("command", ALLOWED)
def test_looking_around_is_read_only_and_its_paths_are_named(command: str) -> None:
    assert read_only_paths(command) == ALLOWED[command]


@pytest.mark.parametrize("command", REFUSED_COMMANDS)
def test_what_could_do_more_is_not_read_only(command: str) -> None:
    assert not is_read_only_command(command)


def test_a_quoted_tilde_is_no_home() -> None:
    assert read_only_paths("cat '~/x' a") == ("./~/x", "a")


def test_flags_behind_an_operand_count_as_operands_too() -> None:
    assert read_only_paths("grep foo a.txt -n") == ("a.txt", "-n")
    assert read_only_paths("head a.txt -n 5") == ("a.txt", "-n", "5")


WRAPPERS = [
    "{};ls", "ls;{}", "{}&", "({})", "$({})", "`{}`", "{} >x", "{} <x", "{}||ls", "! {}", "X=1 {}", "env {}",
    "sudo {}", "xargs {}", "eval {}", "time {}", "{}\nls", "ls\n{}", "{{ {}; }}", "sh -c '{}'", "{} $x", "{} ~",
    "{} *", "{} <(ls)", "if {}; then ls; fi", "{} #", "{} 2>x", "exec {}", "timeout 5 {}", "{} \u202e",
    "{} $'x'", "{} {{a,b}}", "{}|&cat",
]  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_wrapper_makes_anything_read_only(wrapper: str) -> None:
    for command in (*ALLOWED, *REFUSED_COMMANDS):
        assert not is_read_only_command(wrapper.format(command))


_COMMANDS = st.sampled_from([*ALLOWED, *REFUSED_COMMANDS])


@given(st.lists(_COMMANDS, min_size=1, max_size=4), st.lists(st.sampled_from([" | ", "&&", " 2>&1 | "]), min_size=3))
def test_a_chain_is_read_only_when_all_of_it_is(commands: list[str], joints: list[str]) -> None:
    chain = commands[0] + "".join(joint + command for joint, command in zip(joints, commands[1:], strict=False))

    assert is_read_only_command(chain) == all(is_read_only_command(command) for command in commands)


@given(
    st.sampled_from(
        [command for command in [*ALLOWED, *REFUSED_COMMANDS] if command.replace(" ", "").replace("-", "").isalnum()]
    )
)
def test_quoting_harmless_words_keeps_the_verdict(command: str) -> None:
    verdict = is_read_only_command(command)
    for quoted in ("'{}'", '"{}"', "''{}"):
        assert is_read_only_command(" ".join(quoted.format(word) for word in command.split())) == verdict


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("box")
    (root / "src").mkdir()
    (root / "a.txt").write_text("b,2\na,1\nfoo\n")
    (root / "b.txt").write_text("a,1\nbar\n")
    (root / "-n").write_text("odd\n")
    (root / "src/a.py").write_text("foo = 1\n")
    (root / "link").symlink_to("a.txt")
    return root


def run_in(box: Path, command: str) -> None:
    subprocess.run(
        ["bash", "-c", command],
        cwd=box,
        env={"PATH": os.environ["PATH"], "HOME": str(box), "TMPDIR": str(box)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )


def state_of(root: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of change and content of all that is there."""
    state = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        state[str(path)] = (status.st_mode, status.st_mtime_ns, content)
    return state


def test_every_allowed_example_leaves_everything_as_it_was(box: Path) -> None:
    before = state_of(box)
    ran = 0
    for command in ALLOWED:
        if all(part.split()[0] in ("type", "pwd") or shutil.which(part.split()[0]) for part in command.split("|")):
            run_in(box, command)
            ran += 1
            assert state_of(box) == before, command
    assert ran > len(ALLOWED) / 2


@settings(max_examples=100, deadline=None)
@given(_COMMANDS, st.integers(0, 200), st.sampled_from(";&<>()$`\\\"'*?[]{}~#!\n\t |-x"))
def test_one_more_character_never_lets_a_command_do_something(
    box: Path, command: str, place: int, character: str
) -> None:
    place %= len(command) + 1
    changed = command[:place] + character + command[place:]
    before = state_of(box)

    if is_read_only_command(changed):
        run_in(box, changed)

    assert state_of(box) == before


def test_each_program_of_the_table_has_an_example() -> None:
    shown = {part.split()[0] for command in ALLOWED for part in command.replace("&&", "|").split("|")}
    plain = {
        "arch",
        "cksum",
        "column",
        "egrep",
        "fgrep",
        "false",
        "fold",
        "free",
        "hexdump",
        "rev",
        "sha1sum",
        "sha256sum",
        "tac",
    }

    assert set(PROGRAMS) - shown == plain
