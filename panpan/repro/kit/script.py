"""`reproduce.sh` of a kit: runs the commands again and compares, with a POSIX shell and python3 alone."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from panpan.repro.kit.compare import run_name, runs_of
from panpan.types.dataclass import dataclass

LockKind: TypeAlias = Literal["none", "requirements", "uv", "project"]
"""Way to install packages: none; `locks/requirements.txt`; uv.lock of the sources; the project of the sources alone."""
PACKAGES = "locks/packages.txt"
"""Path in a kit of the packages that the runs of its check had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFacts:
    """Facts about a kit that its script needs."""

    title: str
    address: str = ""
    """Address of the repository; empty if the sources are in the kit."""
    commit: str = ""
    lock: LockKind = "none"
    has_packages: bool = False
    """True if the kit has the packages that the runs of the check had."""
    python_before: str = ""
    """Version of Python of these runs; empty if it is not known."""
    python: str = ""
    """Version of Python for uv; empty if any will do."""
    setup: str = ""
    """Line for the shell before each command."""
    setup_timeout_s: float = 1_800.0
    data: Sequence[str] = ()
    """Paths of data that is not in the kit, relative to the sources."""
    seconds: float = 0.0
    """Time that the runs took in the check."""


_HEAD = """\
#!/bin/sh
# Runs the commands of a check again, and compares their numbers with the paper's: {title}
# It needs a POSIX shell, python3 (3.9 or later), tar and gzip, and no panpan.
#
# Usage: sh reproduce.sh [-d DATA] [-w WORK]
#   DATA  folder with the data of data.sha256, at the same paths
#   WORK  folder for the runs, which must be empty or missing; "work" beside this script if not given
#
# Exit codes: 0 no claim deviates, 1 a claim deviates, 2 it cannot run here.
set -u
PATH=${{PATH:-/usr/local/bin:/usr/bin:/bin}}

fail() {{
    printf 'reproduce.sh: %s\\n' "$1" >&2
    exit 2
}}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 2
data=''
work=$here/work
while getopts d:w: option; do
    case $option in
    d) data=$(CDPATH='' cd -- "$OPTARG" && pwd) || fail "there is no folder $OPTARG" ;;
    w) work=$OPTARG ;;
    *) exit 2 ;;
    esac
done
command -v python3 >/dev/null || fail 'python3 is missing; install it'
{{ mkdir -p -- "$work" && work=$(CDPATH='' cd -- "$work" && pwd); }} || fail "the folder $work cannot be made"
[ -z "$(ls -A -- "$work")" ] || fail "$work is not empty; remove it, or name another folder with -w"
mkdir -- "$work/source" "$work/results" "$work/bin" || exit 2
"""

_FROM_ARCHIVE = """
gzip -dc <"$here/source.tar.gz" | (cd "$work/source" && tar -xof -) || fail 'source.tar.gz cannot be unpacked'
"""

_FROM_ADDRESS = """
command -v git >/dev/null || fail 'git is missing, which fetches the sources; install it'
{{ git clone --quiet -- {address} "$work/source" &&
    git -C "$work/source" checkout --quiet --detach {commit}; }} || fail 'the sources cannot be fetched'
"""

_DATA = """
# Data is not in the kit: it is linked into the sources, and its checksums are compared.
link_data() {{
    if [ -n "$data" ] && [ -e "$data/$1" ] && [ ! -e "$work/source/$1" ]; then
        mkdir -p -- "$(dirname -- "$work/source/$1")" && ln -s "$data/$1" "$work/source/$1"
    fi
}}
{links}
python3 "$here/compare.py" data "$here/data.sha256" "$work/source" ||
    fail 'data is missing; name the folder that holds it with -d. README.md says where it comes from'
"""

_NO_DATA = """
: "$data" # the commands need none
"""

_ANY_PYTHON = """
make_environment() {{
    if command -v uv >/dev/null; then
        uv venv --quiet {python}"$work/venv"
    else
        python3 -m venv "$work/venv"
    fi
}}
"""

_PYTHON_BEFORE = """
# The Python of the check if it is installed here, else any.
make_environment() {{
    if command -v uv >/dev/null; then
        UV_PYTHON_DOWNLOADS=never uv venv --quiet --python {python} "$work/venv" 2>"$work/venv.txt" ||
            uv venv --quiet "$work/venv"
    else
        python{python} -m venv "$work/venv" 2>"$work/venv.txt" || python3 -m venv --clear "$work/venv"
    fi
}}
"""

_ADD = """
add() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$work/venv" "$@"
    else
        "$work/venv/bin/python3" -m pip install --quiet "$@"
    fi
}
"""

_AS_CHECKED = """
# Packages get the versions of the check. Where these cannot be had, as on another platform, the lock alone decides.
add_as_checked() {
    add -c "$here/locks/packages.txt" "$@" 2>"$work/install.txt" || add "$@"
}
"""

_LOCKS: Mapping[LockKind, str] = {
    "none": "",
    "requirements": """
if ! python3 "$here/compare.py" installed "$here/locks/requirements.txt"{packages}; then
    {{ make_environment && {add} -r "$here/locks/requirements.txt"; }} ||
        fail 'the packages of locks/requirements.txt cannot be installed'
    PATH=$work/venv/bin:$PATH
fi
""",
    "uv": """
if command -v uv >/dev/null; then
    UV_PROJECT_ENVIRONMENT=$work/venv uv sync --quiet --frozen {python}--project "$work/source"
elif [ -f "$here/locks/requirements.txt" ]; then
    python3 -m venv "$work/venv" &&
        "$work/venv/bin/python3" -m pip install --quiet -r "$here/locks/requirements.txt" &&
        if grep -q '^.build-system.' "$work/source/pyproject.toml"; then
            "$work/venv/bin/python3" -m pip install --quiet --no-deps -e "$work/source"
        fi
else
    fail 'uv is missing, which installs the packages of uv.lock; install it'
fi || fail 'the packages of uv.lock cannot be installed'
PATH=$work/venv/bin:$PATH
""",
    "project": """
{{ make_environment && {add} -e "$work/source"; }} || fail 'the project cannot be installed'
PATH=$work/venv/bin:$PATH
""",
}

_SETUP_OUTPUT = '>"$results/setup.txt" 2>&1'

_RUNS = """
# Many systems have python3 and no python.
if ! command -v python >/dev/null; then
    printf '#!/bin/sh\\nexec python3 "$@"\\n' >"$work/bin/python" && chmod +x "$work/bin/python"
fi
PATH=$work/bin:$PATH
export PATH

# Without the program timeout, as on macOS, a run has all the time it wants.
bounded() {{
    seconds=$1
    shift
    if command -v timeout >/dev/null; then
        timeout -k 10 "$seconds" "$@"
    else
        "$@"
    fi
}}

# Each run gets its own copy of the sources, so that no file of an earlier run counts.
run() {{
    number=$1 limit=$2 line=$3
    shift 3
    results=$work/results/$number
    rm -rf -- "$work/run"
    {{ mkdir -p -- "$results/files" && cp -RPp -- "$work/source" "$work/run"; }} || fail "$work cannot be written"
    printf 'run %s of {count}: %s\\n' "$number" "$(printf '%s' "$line" | tr -d '\\000-\\037\\177')"
    code=0
    (cd "$work/run" && {setup}bounded "$limit" /bin/sh -c "$line") >"$results/output.txt" 2>&1 </dev/null || code=$?
    printf '%s\\n' "$code" >"$results/exit"
    for file in "$@"; do
        if [ -f "$work/run/$file" ]; then
            mkdir -p -- "$(dirname -- "$results/files/$file")" && cp -- "$work/run/$file" "$results/files/$file"
        fi
    done
}}
"""

_TELL_PACKAGES = f'python3 "$here/compare.py" packages "$here/{PACKAGES}"\n'

_TAIL = """\
rm -rf -- "$work/run"

printf '\\n'
{packages}python3 "$here/compare.py" table "$here/check.json" "$work/results" "$work/results.json"
"""


def script(check: Mapping[str, Any], facts: ScriptFacts) -> str:
    """Return the script of a kit.

    Args:
        check: The kit's `check.json`.
        facts: Facts about the kit.
    """
    return "".join(_parts(check, facts))


def _parts(check: Mapping[str, Any], facts: ScriptFacts) -> Iterator[str]:
    runs = runs_of(check)
    yield _HEAD.format(title=_comment(facts.title) or "no title")
    if facts.address:
        yield _FROM_ADDRESS.format(address=shlex.quote(facts.address), commit=shlex.quote(facts.commit))
    else:
        yield _FROM_ARCHIVE
    links = "\n".join(f"link_data {shlex.quote(path)}" for path in facts.data)
    yield _DATA.format(links=links) if links else _NO_DATA
    yield from _installation(facts)
    setup = (
        f"bounded {facts.setup_timeout_s:.0f} /bin/sh -c {shlex.quote(facts.setup)} {_SETUP_OUTPUT} && "
        if facts.setup
        else ""
    )
    yield _RUNS.format(count=len(runs), setup=setup)
    if facts.seconds >= 1:
        yield f"\nprintf 'the runs took {facts.seconds:.0f} s in the check\\n'\n"
    for number, one in enumerate(runs, 1):
        words = [run_name(number), f"{one['timeout_s']:.0f}", one["command"], *one["files"]]
        yield f"run {' '.join(map(shlex.quote, words))}\n"
    yield _TAIL.format(packages=_TELL_PACKAGES if facts.has_packages else "")


def _installation(facts: ScriptFacts) -> Iterator[str]:
    python = f"--python {shlex.quote(facts.python)} " if facts.python else ""
    if facts.lock in ("requirements", "project"):
        before = re.match(r"3\.[0-9]{1,3}", facts.python_before)
        if before is not None and not python:
            yield _PYTHON_BEFORE.format(python=before[0])
        else:
            yield _ANY_PYTHON.format(python=python)
        yield _ADD
        yield _AS_CHECKED if facts.has_packages else ""
    add, packages = ("add_as_checked", f' "$here/{PACKAGES}"') if facts.has_packages else ("add", "")
    yield _LOCKS[facts.lock].format(python=python, add=add, packages=packages)


def _comment(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:200]
