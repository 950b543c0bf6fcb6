"""From what the model wrote to a call that can run: the tool found, the arguments checked.

Whatever is wrong here becomes the text of an error result, so it says what to do instead.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ValidationError

from panpan.core.hooks import ToolCall
from panpan.core.tool import Tool
from panpan.errors import PanpanError
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass

MAX_ERROR_CHARS = 4_000
"""Of the text that tells the model why a call did not run."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A tool use, ready to run or with the reason why it cannot."""

    use: ToolUseBlock
    tool: Tool[Any] | None = None
    args: BaseModel | None = None
    problem: str = ""
    """Why it cannot run; empty where `tool` and `args` are set."""
    runs_alone: bool = False
    """True if no other call may run beside it; one that cannot run is in nobody's way."""


def prepared(use: ToolUseBlock, tools: Mapping[str, Tool[Any]], offered: Collection[str] | None = None) -> PreparedCall:
    """Find the tool of `use` and check its arguments.

    Args:
        use: The call.
        tools: Those that can be called.
        offered: Names of those that the model is told of; None: all.
    """
    if use.input_error is not None:
        return PreparedCall(use, problem=f"The call was not run: {use.input_error}")
    try:
        return _checked(use, tools, tools.keys() if offered is None else offered)
    except PanpanError as error:
        return PreparedCall(use, problem=f"{use.name} was not run: {error}")
    except Exception as error:  # a bug in one tool's model costs that call
        return PreparedCall(use, problem=f"{use.name} failed unexpectedly: {type(error).__name__}: {error}")


def _checked(use: ToolUseBlock, tools: Mapping[str, Tool[Any]], offered: Collection[str]) -> PreparedCall:
    tool = tools.get(use.name)
    if tool is None:
        return PreparedCall(use, problem=_unknown_tool(use.name, sorted(tools.keys() & offered)))
    try:
        args = tool.input_model.model_validate(use.input)
    except ValidationError as error:
        return PreparedCall(use, problem=_wrong_arguments(use.name, error))
    return PreparedCall(use, tool, args, runs_alone=not tool.runs_beside_others(args))


def batches(calls: Sequence[PreparedCall]) -> list[list[PreparedCall]]:
    """Split calls into what runs together: neighbouring calls that may; any other is alone. The order is kept."""
    together: list[list[PreparedCall]] = []
    for call in calls:
        if together and not call.runs_alone and not together[-1][-1].runs_alone:
            together[-1].append(call)
        else:
            together.append([call])
    return together


def equal_calls(batch: Sequence[PreparedCall]) -> list[list[PreparedCall]]:
    """Group the calls of a batch that ask for the same and may share a result."""
    groups: dict[str, list[PreparedCall]] = {}
    for call in batch:
        is_shared = call.tool is None or call.tool.is_shared
        written = [call.use.name, call.use.input, call.use.input_error, "" if is_shared else call.use.id]
        groups.setdefault(json.dumps(written, sort_keys=True, default=repr), []).append(call)
    return list(groups.values())


def _unknown_tool(name: str, tools: Sequence[str]) -> str:
    by_lower_name = {known.lower(): known for known in tools}
    close = get_close_matches(name.lower(), by_lower_name, n=1)
    hint = f" Did you mean {by_lower_name[close[0]]}?" if close else ""
    return f"There is no tool named {name!r}.{hint} The tools are: {', '.join(tools)}."


def _wrong_arguments(name: str, error: ValidationError) -> str:
    lines = [f"The arguments of {name} do not fit, so it was not run:"]
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:10]:
        place = ".".join(str(part) for part in problem["loc"])
        said = problem["msg"].replace("a valid tuple", "a valid list")  # the model writes JSON, which knows no other
        lines.append(f"- {place}: {said}" if place else f"- {said}")
    return "\n".join(lines)


def shortened(text: str) -> str:
    """Return an error's text within bounds: it may repeat what the model wrote, however long that was."""
    if len(text) <= MAX_ERROR_CHARS:
        return text
    half = MAX_ERROR_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def digest_of(call: ToolCall) -> str:
    """Return SHA-256 of what a call would run: the tool, its arguments as they were written, and as they were read."""
    text = json.dumps([call.tool.name, call.input, call.args.model_dump()], sort_keys=True, default=repr)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
