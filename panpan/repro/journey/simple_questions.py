"""Simple questions about claims, for small models: one claim, no tools, and one of the places that a repository has.

The rule: the model chooses, and invents nothing. It sees the places that have the words of the claim's row. An answer
that is none of them, or leaves open if the number is a percentage, leaves the claim as it was, so that it is not run.
So do answers that give two numbers of the paper the same place. The rest is a draft like any other.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from typing import Any

from anyio import to_thread

from panpan.errors import AnswerNeededError, BudgetError, ConfigError, OutputError, PanpanError
from panpan.repro.claims.claim import Claim, Extract
from panpan.repro.claims.written_number import read_number
from panpan.repro.journey.model_runs import ModelRuns
from panpan.repro.journey.printed_numbers import Place, printed_numbers
from panpan.repro.journey.report import label_of
from panpan.repro.journey.repository_files import names_in
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.system.files.canonical import canonical_path

_MAX_QUESTIONS = 20
_NUMBER = r"\s*[:=]?\s*(-?[0-9][0-9.,]*(?:e-?[0-9]+)?)"
_ENDING = re.compile(r"[\s:=]*(?:[-+]?[0-9][0-9.,]*%?|\{[^{}]*\})?[\s:=]*$")
_SEED = re.compile(r"(--?seed[= ]|\bseed=)(\d+)")
_WORD = re.compile(r"\w+")
_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "before": {"type": "string"}},
    "required": ["command", "before"],
}
_FLAGS = ("--tools", "", "--json-schema", json.dumps(_SCHEMA))


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
    places = await _places(folder)
    chosen: dict[str, Place] = {}
    possible = [(claim, near) for claim in claims if (near := nearest(claim, places))][:_MAX_QUESTIONS]
    for number, (claim, near) in enumerate(possible, 1):
        say(f"prepare: asks about {label_of(claim)} ({number} of {len(possible)})")
        message = _question(claim, near)
        about = sha256(message.encode()).hexdigest()[:16]
        try:
            answer = await runs.ask(f"ask-{about}", about, message, _FLAGS)
        except (AnswerNeededError, BudgetError, ConfigError, OutputError):
            raise
        except PanpanError:  # it gave no JSON
            continue
        place = chosen_place(claim, answer, places)
        if place is not None:
            chosen[claim.id] = place
    return completed_claims([(claim, chosen[claim.id]) for claim in claims if claim.id in chosen])


def chosen_place(claim: Claim, answer: str, places: Sequence[Place]) -> Place | None:
    """Return the place that an answer names; None if it is none, or not that of the claim for all that can be seen."""
    try:
        found: Any = json.loads(answer)
        command, before = str(found["command"]), str(found["before"]).strip()
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    last = before.rpartition("\n")[2].strip()  # small models repeat all lines up to the number
    wanted = (" ".join(command.split()), _ENDING.sub("", last))
    place = next((one for one in places if (" ".join(one.command.split()), one.text) == wanted), None)
    if place is None or not _is_same_scale(claim, place) or _is_end_of_another(place, places):
        return None
    return place if place in nearest(claim, places) else None


def _is_end_of_another(place: Place, places: Sequence[Place]) -> bool:
    """True if its text is found within the text of another number of the same command."""
    others = [one.text for one in places if one.command == place.command and one.text != place.text]
    return any(text.endswith(place.text) for text in others)


def nearest(claim: Claim, places: Sequence[Place]) -> Sequence[Place]:
    """Return the places that have all words of a claim's row, and of these the ones with most words of its column."""
    row, column = (set(_WORD.findall(text.lower())) for text in (claim.row, claim.column))
    if not row and not column:
        return ()
    of_row = [place for place in places if all(word in place.words for word in row)]
    fits = [sum(word in place.words for word in column) for place in of_row]
    most = max(fits, default=0)
    return [place for place, fit in zip(of_row, fits, strict=True) if fit == most and (row or fit)]


def _is_same_scale(claim: Claim, place: Place) -> bool:
    """True unless one of the numbers may be percent and the other one a fraction."""
    number = read_number(claim.value)
    if number is None:
        return False
    if place.is_percent:
        return claim.unit == "%" or abs(number.value) > 1
    return claim.unit != "%"


def completed_claims(chosen: Sequence[tuple[Claim, Place]]) -> Sequence[Claim]:
    """Return the completed claims; of those with different values at one place none is right for sure."""
    values = defaultdict(set)
    for claim, place in chosen:
        values[place].add(claim.value)
    return [_completed(claim, place) for claim, place in chosen if len(values[place]) == 1]


def _completed(claim: Claim, place: Place) -> Claim:
    seed = _SEED.search(place.command)
    given: dict[str, object] = {
        "command": _SEED.sub(r"\1{seed}", place.command),
        "extract": Extract(output=re.escape(place.text) + _NUMBER),
        "seed": int(seed[2]) if seed else claim.seed,
    }
    return Claim.model_validate({**dict(claim), **given})


def _question(claim: Claim, places: Sequence[Place]) -> str:
    """Return the message; it shows a zero for each number, so that none is chosen because it fits."""
    text = (files("panpan.repro.journey") / "simple_question.md").read_text(encoding="utf-8")
    blocks = [
        "\n".join([f"$ {command}", *(f"{place.text}: 0.0" for place in printed)])
        for command, printed in groupby(places, key=lambda place: place.command)
    ]
    name = f'"{claim.row}" ({claim.column})' if claim.row and claim.column else f'"{claim.row or claim.column}"'
    return text.replace("{places}", "\n\n".join(blocks)).replace("{claim}", name)


async def _places(folder: ReproductionFolder) -> Sequence[Place]:
    top = canonical_path(folder.source)
    names = await names_in(top)
    return () if names is None else await to_thread.run_sync(printed_numbers, top, names)
