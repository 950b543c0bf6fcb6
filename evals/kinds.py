"""Kinds of tasks; each trial gets a new task from a random number and a vocabulary."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from evals.task import Outcome, Task
from evals.vocabulary import Vocabulary

Maker: TypeAlias = Callable[[Random, Vocabulary], Task]


def read(rng: Random, words: Vocabulary) -> Task:
    """Return a task to look a value up."""
    key, other = rng.sample(words.nouns, 2)
    value, another = rng.sample(words.values, 2)
    file = f"{rng.choice(words.nouns)}.txt"
    prompt = _wording(rng, words, "read").format(key=key, file=file)
    return Task("read", prompt, {file: f"{other}: {another}\n{key}: {value}\n"}, _answers(value))


def create(rng: Random, words: Vocabulary) -> Task:
    """Return a task to make a file."""
    file, text = f"{rng.choice(words.nouns)}.txt", " ".join(rng.sample(words.values, 2))
    prompt = _wording(rng, words, "create").format(file=file, text=text)
    return Task("create", prompt, _bystander(words), _has_text(file, text), frozenset({file}))


def replace(rng: Random, words: Vocabulary) -> Task:
    """Return a task to replace a word."""
    file = f"{rng.choice(words.nouns)}.txt"
    old, new, kept = rng.sample(words.values, 3)
    before = f"The first is {kept}.\nThe second is {old}.\n"
    prompt = _wording(rng, words, "replace").format(file=file, old=old, new=new)
    return Task("replace", prompt, {file: before}, _has_text(file, before.replace(old, new).strip()), frozenset({file}))


def list_files(rng: Random, words: Vocabulary) -> Task:
    """Return a task to list a folder."""
    folder = rng.choice(words.folders)
    names = [f"{noun}.{rng.choice(['py', 'txt', 'md'])}" for noun in rng.sample(words.nouns, 3)]
    prompt = _wording(rng, words, "list").format(folder=folder)
    files = {f"{folder}/{name}": f"{name}\n" for name in names}
    return Task("list", prompt, files | _bystander(words), _answers(*names))


def count(rng: Random, words: Vocabulary) -> Task:
    """Return a task to count lines."""
    file, lines = f"{rng.choice(words.nouns)}.csv", rng.randint(11, 60)
    prompt = _wording(rng, words, "count").format(file=file)
    text = "".join(f"{rng.choice(words.values)},{rng.randint(100, 999)}\n" for _ in range(lines))
    return Task("count", prompt, {file: text}, _answers(str(lines)))


def rename(rng: Random, words: Vocabulary) -> Task:
    """Return a task to rename a function in two files."""
    old, new = rng.sample(words.functions, 2)
    first, second = (f"{noun}.py" for noun in rng.sample(words.nouns, 2))
    module = first.removesuffix(".py")
    files = {
        first: f"def {old}(items):\n    return len(items) + 1\n",
        second: f"from {module} import {old}\n\nprint({old}([1, 2]))\n",
    }
    prompt = _wording(rng, words, "rename").format(old=old, new=new, first=first, second=second)

    def passes(outcome: Outcome) -> bool:
        return all(outcome.text(name) == text.replace(old, new) for name, text in files.items())

    return Task("rename", prompt, files, passes, frozenset(files))


def search(rng: Random, words: Vocabulary) -> Task:
    """Return a task to find a definition."""
    symbol = f"{rng.choice(words.values).upper()}_{rng.choice(words.nouns).upper()}"
    folder, other = rng.sample(words.folders, 2)
    names = [f"{noun}.py" for noun in rng.sample(words.nouns, 3)]
    files = {
        f"{folder}/{names[0]}": f"{symbol} = {rng.randint(2, 99)}\n",
        f"{folder}/{names[1]}": "LIMIT = 10\n",
        f"{other}/{names[2]}": "def run():\n    return 3\n",
    }
    return Task("search", _wording(rng, words, "search").format(symbol=symbol), files, _answers(names[0]))


def append(rng: Random, words: Vocabulary) -> Task:
    """Return a task to add a line."""
    file = f"{rng.choice(words.nouns)}.txt"
    first, second, text = rng.sample(words.values, 3)
    prompt = _wording(rng, words, "append").format(file=file, text=text)
    return Task(
        "append",
        prompt,
        {file: f"{first}\n{second}\n"},
        _has_text(file, f"{first}\n{second}\n{text}"),
        frozenset({file}),
    )


def script(rng: Random, words: Vocabulary) -> Task:
    """Return a task to write a program and run it."""
    file, n, program = f"{rng.choice(words.nouns)}.py", rng.randint(4, 9), rng.choice(words.programs)
    job = program.wording.format(n=n)
    prompt = _wording(rng, words, "script").format(file=file, job=job)
    expected = [str(line) for line in eval(program.expected, {"n": n})]

    def passes(outcome: Outcome) -> bool:
        ran = any(f"./{file}" in command or re.search(rf"python.*{file}", command) for command in outcome.commands)
        return ran and outcome.text(file) is not None and _output(outcome, file).split() == " ".join(expected).split()

    return Task("script", prompt, _bystander(words), passes, frozenset({file}))


def fix_bug(rng: Random, words: Vocabulary) -> Task:
    """Return a task to fix a bug in a file that is named."""
    bug = rng.choice(words.bugs)
    first, second = rng.sample(words.nouns, 2)
    file, check = f"{first}.py", f"check_{second}.py"
    right = bug.module.partition("return ")[2].strip()
    function = ast.parse(bug.module).body[0].name  # type: ignore[attr-defined]
    checking = f"from {first} import {function}\n\nassert {bug.check}\nprint('ok')\n"
    files = {file: bug.module.replace(right, bug.wrong), check: checking}
    prompt = _wording(rng, words, "fix_bug").format(file=file, check=check)

    def passes(outcome: Outcome) -> bool:
        return _output(outcome, check).strip() == "ok"

    return Task("fix_bug", prompt, files, passes, frozenset({file}))


KINDS: Mapping[str, Maker] = {
    "read": read,
    "create": create,
    "replace": replace,
    "list": list_files,
    "count": count,
    "rename": rename,
    "search": search,
    "append": append,
    "script": script,
    "fix_bug": fix_bug,
}


def _wording(rng: Random, words: Vocabulary, kind: str) -> str:
    return rng.choice(words.wordings[kind])


def _bystander(words: Vocabulary) -> dict[str, str]:
    """Return a file that has nothing to do with the task."""
    return {"README.md": f"# {words.nouns[0]}\n\nNotes about {words.values[0]}.\n"}


def _answers(*texts: str) -> Callable[[Outcome], bool]:
    """Return a check that the model used a tool and that its last reply contains all of `texts`, as whole words."""
    words = [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE) for text in texts]
    return lambda outcome: outcome.calls > 0 and all(word.search(outcome.answer) for word in words)


def _has_text(file: str, text: str) -> Callable[[Outcome], bool]:
    """Return a check that a file contains exactly `text`; a missing or extra line break at the end is ignored."""
    return lambda outcome: (outcome.text(file) or "").strip() == text


def _output(outcome: Outcome, file: str) -> str:
    """Return the output of a script, run again for the check; empty if it fails."""
    try:
        ran = subprocess.run(
            [sys.executable, "-B", file], cwd=outcome.folder, capture_output=True, text=True, timeout=20, check=False
        )
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return ran.stdout if ran.returncode == 0 else ""
