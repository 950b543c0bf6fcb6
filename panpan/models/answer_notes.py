"""What the user should know of wishes for the answer that the model does not fulfil as they were said.

The rule: a wish is never left out without a word. The notes follow from the same data as the requests.
"""

from collections.abc import Iterator

from panpan.models.factory import AnswerWishes, ResolvedModel, profile_of


def notes_on_answers(resolved: ResolvedModel, answers: AnswerWishes) -> tuple[str, ...]:
    """Return what to tell at the start, one sentence each; nothing where all is as it was wished."""
    match resolved.kind:
        case "cassette":
            return ()  # what it says is recorded
        case "embedded":
            return tuple(_of_embedded(answers))
        case "anthropic":
            return tuple(_of_anthropic(resolved, answers))
        case "openai":
            return tuple(_of_openai(resolved, answers))


def _of_embedded(answers: AnswerWishes) -> Iterator[str]:
    if answers.thinking_budget_tokens is not None:
        yield f"the small local model does not think, so {_wish('thinking', answers.thinking_place)} has no effect"
    if answers.effort is not None:
        yield f"the small local model knows no effort, so {_wish('the effort', answers.effort_place)} has no effect"
    for name, value in (("top_p", answers.top_p), ("top_k", answers.top_k)):
        if value is not None:
            yield f"the small local model takes no {name}, so it has no effect"


def _of_anthropic(resolved: ResolvedModel, answers: AnswerWishes) -> Iterator[str]:
    from panpan.models.providers.anthropic_request import takes_thinking_budget

    if answers.thinking_budget_tokens is None or takes_thinking_budget(resolved.model):
        return
    if answers.is_budget_chosen:
        yield f"{resolved.model} decides itself how much it thinks, so the thinking budget has no effect; use --effort"


def _of_openai(resolved: ResolvedModel, answers: AnswerWishes) -> Iterator[str]:
    from panpan.models.providers.openai_request import nearest_effort

    profile, who = profile_of(resolved), f"{resolved.model} at {resolved.provider}"
    if answers.thinking_budget_tokens is not None:
        if not profile.thinking:
            wish = _wish("thinking", answers.thinking_place)
            yield f"{who} has no switch for thinking that panpan knows, so {wish} has no effect; use --effort"
        elif answers.is_budget_chosen and "$budget" not in profile.thinking.values():
            yield f"{who} takes no number of tokens to think, so the thinking budget has no effect; use --effort"
    if answers.effort is not None and (sent := nearest_effort(answers.effort, profile.efforts)) != answers.effort:
        yield f"{who} knows no effort {answers.effort}, so {sent} is asked for"


def _wish(what: str, place: str) -> str:
    """Return a wish as the user made it: the flag itself, or what was wished and where that stands."""
    if not place or place.startswith("--"):
        return place or what
    return f"{what} that {place} asks for"
