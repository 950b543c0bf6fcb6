"""Simple questions about claims, for a model that completed none: one claim, no tools, two words to fill in.

The rule: an answer is a draft like any other, and counts as little.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.errors import AnswerNeededError, BudgetError, ConfigError, OutputError, PanpanError, ToolError
from panpan.repro.claims.claim import Claim, Extract
from panpan.repro.journey.model_runs import ModelRuns
from panpan.repro.journey.report import label_of
from panpan.repro.journey.repository_files import names_in
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import clean_for_terminal

MAX_QUESTIONS = 20
_MAX_NAMES = 60
_MAX_FILES = 3
_MAX_CHARS = 3_000
"""Most characters of one file in a question."""
_MAX_BYTES = 1_000_000
_SOURCES = (".py", ".sh", ".r", ".jl", ".m")
_NUMBER = r"\s*[:=]?\s*(-?[0-9][0-9.,]*(?:e-?[0-9]+)?)"
_ENDING = re.compile(r"[\s:=]*(?:[-+]?[0-9][0-9.,]*%?|\{[^{}]*\})?[\s:=]*$")
_SEED = re.compile(r"(--?seed[= ]|\bseed=)(\d+)")
_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "before": {"type": "string"}},
    "required": ["command", "before"],
}


async def ask_simply(
    folder: ReproductionFolder, runs: ModelRuns, claims: Sequence[Claim], say: Callable[[str], None]
) -> Sequence[Claim]:
    """Return claims as the answers complete them; a question that fails changes nothing.

    Raises:
        AnswerNeededError: A run waits for the user.
        BudgetError: The money is used up.
        ConfigError: There is no model.
        OutputError: The folder cannot be written.
    """
    known = await _repository(canonical_path(folder.source))
    text = (files("panpan.repro.journey") / "simple_question.md").read_text(encoding="utf-8")
    flags = ("--tools", "", "--json-schema", json.dumps(_SCHEMA))
    completed = []
    asked = claims[:MAX_QUESTIONS]
    for number, claim in enumerate(asked, 1):
        say(f"prepare: asks about {label_of(claim)} ({number} of {len(asked)})")
        about = sha256(f"{claim.id} {label_of(claim)}".encode()).hexdigest()[:16]
        message = text.replace("{repository}", known).replace("{claim}", label_of(claim))
        try:
            answer = await runs.ask(f"ask-{about}", about, message, flags)
        except (AnswerNeededError, BudgetError, ConfigError, OutputError):
            raise
        except PanpanError:  # it gave no JSON
            continue
        completed.append(_with_answer(claim, answer))
    return completed


def _with_answer(claim: Claim, answer: str) -> Claim:
    """Return a claim with the command and the text before the number that an answer names."""
    try:
        found: Any = json.loads(answer)
        command, before = str(found["command"]).strip(), _before(str(found["before"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return claim
    is_of_row = all(word in before.lower() for word in claim.row.lower().split())  # or it names another number
    if not command or not before or not is_of_row or "\n" in command:
        return claim
    seed = _SEED.search(command)
    given: dict[str, object] = {
        "command": _SEED.sub(r"\1{seed}", command),
        "extract": Extract(output=re.escape(before[:200]) + _NUMBER),
        "seed": int(seed[2]) if seed else claim.seed,
    }
    return Claim.model_validate({**dict(claim), **given})


def _before(text: str) -> str:
    """Return the text before a number, which small models write with the number itself."""
    return _ENDING.sub("", text.strip())


async def _repository(top: Path) -> str:
    """Return what a model without tools has to know of a repository."""
    names = await names_in(top)
    return "" if names is None else await to_thread.run_sync(lambda: "\n\n".join(_told(top, names)))


def _told(top: Path, names: Sequence[str]) -> Iterator[str]:
    yield f"Files: {', '.join(names[:_MAX_NAMES])}"
    readmes = [name for name in names if name.lower().startswith("readme")]
    sources = [name for name in names if name.lower().endswith(_SOURCES)]
    for name in (*readmes[:1], *sorted(sources, key=lambda name: (name.count("/"), name))[:_MAX_FILES]):
        try:
            data = read_regular_file(top / name, max_bytes=_MAX_BYTES)
        except ToolError:
            continue
        yield f"{name}:\n{clean_for_terminal(data.decode(errors='replace'))[:_MAX_CHARS]}"
