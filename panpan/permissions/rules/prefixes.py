"""The commands that may be allowed with any arguments at once: runners whose arguments vary from call to call.

The rule: a command is here only where its arguments choose among what the project says, or are data. Whatever runs the
code or the program that its operands name is not, however often it is used: interpreters and shells (python, node,
bash), wrappers (sudo, env, xargs, timeout, npx, uv run), other machines (ssh, docker), `find -exec`, `go test -exec`,
and `git` without its subcommand, since `git -c` can name programs. Where an interpreter or a wrapper is told to run one
of these runners, the words that say so are part of the prefix, so that nothing else comes in their place. A flag of a
build tool may name a program all the same, as `make --eval` does; so such a rule is only ever the user's own choice,
beside the exact line.
"""

from collections.abc import Mapping, Sequence

_BUILD = "it builds and checks what the project's manifest says"
_SCRIPT = "it runs a script that the project's manifest names; the rest goes to that"
_LINT = "it reads code, and changes what can be mended in it"

_TESTS = "it runs the project's tests; which of them, the arguments say"

PREFIXES: Mapping[str, str] = {
    "pytest": _TESTS,
    "python -m pytest": _TESTS,
    "python3 -m pytest": _TESTS,
    "python -m unittest": _TESTS,
    "python3 -m unittest": _TESTS,
    "uv run pytest": _TESTS,
    "npm run": _SCRIPT,
    "npm test": _SCRIPT,
    "pnpm run": _SCRIPT,
    "pnpm test": _SCRIPT,
    "yarn run": _SCRIPT,
    "yarn test": _SCRIPT,
    "make": "it makes the targets of the project's makefile that the arguments name",
    "cargo build": _BUILD,
    "cargo check": _BUILD,
    "cargo clippy": _BUILD,
    "cargo test": _BUILD,
    "ruff check": _LINT,
    "ruff format": _LINT,
    "git add": "its arguments are paths of the workspace",
    "git commit": "its arguments are mostly the message",
}
"""The first words of a command, and why any may follow."""
_MOST_WORDS = max(prefix.count(" ") + 1 for prefix in PREFIXES)


def prefix_of(words: Sequence[str]) -> str | None:
    """Return the first words of a simple command that may be followed by any others, where others follow."""
    beginnings = (" ".join(words[:count]) for count in range(1, min(len(words), _MOST_WORDS + 1)))
    return next((beginning for beginning in beginnings if beginning in PREFIXES), None)
