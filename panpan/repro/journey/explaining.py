"""Explaining: a model looks for the reasons of numbers that deviate. Its words decide nothing."""

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from panpan.repro.checking.results import CheckReport, Judgement
from panpan.repro.journey.model_runs import ModelRuns
from panpan.repro.journey.report import label_of
from panpan.repro.journey.reproduction_folder import JourneyState

_LOOKING_TOOLS = "Read,LS,Glob,Grep"
_MAX_EXPLAINED = 20
_MAX_TEXT_CHARS = 20_000


async def explain(check: CheckReport, runs: ModelRuns, say: Callable[[str], None]) -> None:
    """Ask the model about the claims that deviate, once about the same numbers. It can only look.

    Raises:
        PanpanError: It failed.
    """
    facts = _facts_of(check)
    if not check.deviates:
        return
    say("explain: the model looks at the numbers that deviate")
    message = (files("panpan.repro.journey") / "explain.md").read_text(encoding="utf-8").replace("{facts}", facts)
    await runs.ask("explain", _digest(facts), message, ("--tools", _LOOKING_TOOLS))


def explanation_of(check: CheckReport, state: JourneyState) -> str:
    """Return the model's words about the numbers of a check; empty if it has said nothing about these."""
    work = state.work.get("explain")
    if work is None or not check.deviates or work.about != _digest(_facts_of(check)):
        return ""
    return work.text[:_MAX_TEXT_CHARS]


def _facts_of(check: CheckReport) -> str:
    deviating = [one for one in check.judgements if one.verdict == "deviates"][:_MAX_EXPLAINED]
    return json.dumps([_facts(one) for one in deviating], indent=1, ensure_ascii=False)


def _digest(facts: str) -> str:
    return sha256(facts.encode()).hexdigest()[:16]


def _facts(one: Judgement) -> dict[str, Any]:
    claim = one.claim
    return {
        "id": claim.id,
        "claim": label_of(claim),
        "the paper says": claim.value,
        "measured": list(_first(one.measured)),
        "why": one.reason,
        "hints": list(one.hints),
        "command": claim.command,
        "seeds": list(_first([run.seed for run in one.runs])),
    }


def _first(items: Sequence[Any]) -> Sequence[Any]:
    return list(dict.fromkeys(items))[:20]
