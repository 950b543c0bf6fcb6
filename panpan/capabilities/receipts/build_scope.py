"""Builds by their words: if a command that wrote binaries was one, and of everything.

The rule: words only ever narrow down what a command shows. That it built something, its outputs say.
"""

import posixpath
import re
from collections.abc import Mapping

from panpan.capabilities.receipts.command_scope import Words
from panpan.receipts.receipt import Receipt
from panpan.types.pattern import compile_late

_VERBS: Mapping[str, frozenset[str]] = {
    "make": frozenset({"", "all", "build", "install"}),
    "gmake": frozenset({"", "all", "build", "install"}),
    "ninja": frozenset({"", "all", "install"}),
    "just": frozenset({"build"}),
    "cmake": frozenset({"--build"}),
    "meson": frozenset({"compile"}),
    "cargo": frozenset({"build", "check"}),
    "go": frozenset({"build"}),
    "zig": frozenset({"build"}),
    "swift": frozenset({"build"}),
    "dotnet": frozenset({"build"}),
    "bazel": frozenset({"build"}),
    "cabal": frozenset({"build"}),
    "stack": frozenset({"build"}),
    "npm": frozenset({"build"}),
    "pnpm": frozenset({"build"}),
    "yarn": frozenset({"build"}),
    "mvn": frozenset({"package", "compile", "install", "verify"}),
    "gradle": frozenset({"build", "assemble"}),
    "gradlew": frozenset({"build", "assemble"}),
    "uv": frozenset({"build"}),
    "poetry": frozenset({"build"}),
    "hatch": frozenset({"build"}),
    "flit": frozenset({"build"}),
    "pdm": frozenset({"build"}),
    "maturin": frozenset({"build", "develop"}),
    "python": frozenset({"build"}),
    "latexmk": frozenset({"*"}),
    "tectonic": frozenset({"*"}),
    "pdflatex": frozenset({"*"}),
    "xelatex": frozenset({"*"}),
    "lualatex": frozenset({"*"}),
    "tsc": frozenset({""}),
}
"""Words of a build program that stand for building everything; `*` for any."""
_COMPILERS = compile_late(
    r"(?:[\w-]+-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|rustc|nvcc|gfortran|javac|ghc|hipcc)(?:-[\d.]+)?"
)
_BUILD_FOLDER = compile_late(r"(?:\./)?_?(?:cmake-)?(?:build|out|builddir)(?:[-_/][\w.-]+)*/?")
_VALUES = frozenset({"-j", "--parallel", "--config", "--profile", "--jobs", "-o", "--outdir", "--features"})
_NARROWING = compile_late(
    r"-C|--directory|--manifest-path|-p|--package|--bin|--lib|--example|--target|-t|-f|--file|-pl|-k"
)
_ROLE = compile_late(r"(?:run|exec|workspace|-m|setup\.py|build_ext|bdist_wheel|sdist|--inplace)")


def names_build(receipt: Receipt) -> bool:
    """Return True if the words name a program that builds."""
    return any(_is_build(words) for words in receipt.commands)


def builds_all(receipt: Receipt, top: str) -> bool:
    """Return True if the words stand for building the whole workspace.

    Args:
        receipt: The command.
        top: The workspace, absolute and canonical.
    """
    place, found = posixpath.join(top, receipt.cwd), False
    for words in receipt.commands:
        if words[:1] == ("cd",):
            place = posixpath.normpath(posixpath.join(place, words[1])) if len(words) == 2 and words[1] else ""
        elif _is_build(words):
            within = posixpath.relpath(place, top) if place else ".."
            found = True
            if not (within == "." or _BUILD_FOLDER.fullmatch(within)) or not _is_whole(words):
                return False
    return found


def is_compiler(receipt: Receipt) -> bool:
    """Return True if it is a compiler that was given files, and no program that knows what there is to build."""
    return any(_COMPILERS.fullmatch(posixpath.basename(words[0])) for words in receipt.commands if words)


def _is_build(words: Words) -> bool:
    program = posixpath.basename(words[0]) if words else ""
    if _COMPILERS.fullmatch(program):
        return True
    verbs = _VERBS.get(re.sub(r"^python[\d.]+$", "python", program))
    if verbs is None:
        return False
    operands = [word for word in words[1:] if not word.startswith("-") or word == "--build"]
    return bool(verbs & {"*", ""}) or any(word in verbs or word.startswith("build:") for word in operands)


def _is_whole(words: Words) -> bool:
    program = posixpath.basename(words[0])
    if _COMPILERS.fullmatch(program):
        return "-c" not in words and "-fsyntax-only" not in words
    verbs = _VERBS[re.sub(r"^python[\d.]+$", "python", program)]
    if "*" in verbs:
        return True
    waiting, operands = list(reversed(words[1:])), list[str]()
    while waiting:
        word = waiting.pop()
        if word in ("-C", "--build") and waiting and _BUILD_FOLDER.fullmatch(waiting[-1]):
            waiting.pop()
            operands += [word] if word == "--build" else []
        elif word in _VALUES:
            waiting = waiting[:-1]
        elif _NARROWING.fullmatch(word.partition("=")[0]) and not (program.startswith("python") and word == "-p"):
            return False
        elif not word.startswith("-"):
            operands.append(word)
    return all(word in verbs or _ROLE.fullmatch(word) or word in (".", "./...") for word in operands)
