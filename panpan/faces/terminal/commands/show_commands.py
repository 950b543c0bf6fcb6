"""Commands that show the context, cost and status of the session, and the state of the machine."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from itertools import accumulate

from anyio import to_thread

from panpan.cli_kit.failures import machine_facts, write_report
from panpan.config.locations import Locations
from panpan.errors import PanpanError
from panpan.faces.terminal.commands.session_keys import session_redactor
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.turn_text import SHOWN_FROM_S, shown_cost
from panpan.session.budget.budget import NO_LIMITS, Budget
from panpan.session.budget.spending import ModelCosts, SessionCosts, session_costs
from panpan.session.command import Command, Terminal, say, say_pairs
from panpan.session.context_usage import SOURCES, ContextUsage, Source, context_usage
from panpan.session.session import Session
from panpan.system.git.git_places import git_branch
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import Span, TextDisplay, text
from panpan.types.role import Role
from panpan.version import __version__

MOST_BAR_CELLS = 80
_FREE = "·"
_BLOCK = "█"
_LOOKS: Mapping[Source, tuple[str, str, Role]] = {
    "system prompt": ("System prompt", "s", "dim"),
    "tools": ("Tool definitions", "t", "accent"),
    "project and reminders": ("Project, reminders", "p", "plan"),
    "user": ("Your messages", "u", "good"),
    "tool results": ("Files, tool results", "f", "warn"),
    "replies": ("Replies and calls", "r", "strong"),
    "thinking": ("Thinking", "h", "bad"),
}
"""Name, letter and role of each source; the letter marks it on a screen without colours."""
_NAME_CELLS = max(len(name) for name, _, _ in _LOOKS.values())


def context_shapes(usage: ContextUsage, width: int) -> list[TextDisplay]:
    """Return the displays for a terminal of `width` cells; the notes below them are `context_note`."""
    rows = [text(used_line(usage), "strong"), _bar(usage, min(width, MOST_BAR_CELLS))]
    rows += [_legend(_blocks(part.source, 1), _LOOKS[part.source][0], part.tokens, usage) for part in usage.parts]
    free = usage.free_tokens
    return rows if free is None else [*rows, _legend(Span(text=_FREE), "Free", free, usage)]


def used_line(usage: ContextUsage) -> str:
    """Return the usage of the context window in one line."""
    about = "" if usage.is_counted else "about "
    share = usage.share_of(usage.used_tokens)
    if share is None:
        return f"{about}{usage.used_tokens:,} tokens; the model's limit is unknown"
    return f"{about}{usage.used_tokens:,} of {usage.window_tokens:,} tokens ({share:.0%})"


def context_note(usage: ContextUsage, *, is_kept_short: bool = True) -> str:
    """Return the notes on the numbers; `is_kept_short` is True if automatic compaction is on."""
    shares = "The shares are estimates by length"
    if usage.is_exact:
        sum_ = "; the provider counted the sum for the next request."
    elif usage.is_counted:
        sum_ = "; the sum is the provider's count at the newest reply, plus an estimate for what came since."
    else:
        sum_ = ", and so is the sum: no reply has been counted by a provider yet."
    return " ".join(filter(None, (f"{shares}{sum_}", _note_when_full(usage, is_kept_short=is_kept_short))))


def _note_when_full(usage: ContextUsage, *, is_kept_short: bool) -> str:
    if not is_kept_short:
        return "Nothing makes the conversation shorter by itself ([compaction] enabled is off); /compact does."
    if usage.window_tokens is None:
        return (
            "Since the size of the window is not known, the conversation is made shorter only once a request is "
            "refused as too long; [compaction] window_tokens says how large it is."
        )
    return ""


def bar_cells(usage: ContextUsage, width: int) -> Sequence[int]:
    """Return the number of cells in the bar for each source, in the order of `SOURCES`; the rest is free."""
    whole = max(usage.window_tokens or 0, usage.used_tokens, 1)
    ends = [round(end * width / whole) for end in accumulate(part.tokens for part in usage.parts)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _bar(usage: ContextUsage, width: int) -> TextDisplay:
    cells = bar_cells(usage, width)
    filled = (_blocks(source, count) for source, count in zip(SOURCES, cells, strict=True) if count)
    return TextDisplay(spans=(*filled, Span(text=_FREE * (width - sum(cells)))))


def _legend(mark: Span, name: str, tokens: int, usage: ContextUsage) -> TextDisplay:
    share = usage.share_of(tokens)
    words = f" {name:{_NAME_CELLS}} {tokens:>9,}" + ("" if share is None else f" {share:>6.1%}")
    return TextDisplay(spans=(mark, Span(text=words)))


def _blocks(source: Source, count: int) -> Span:
    _, letter, role = _LOOKS[source]
    return Span(text=_BLOCK * count, role=role, without_hues=letter * count)


MOST_NAME_CELLS = 36
"""Most cells of a subagent's name."""


def cost_pairs(costs: SessionCosts, waited_s: float) -> Sequence[tuple[str, str]]:
    """Return the rows of `/cost`: costs by model, in total, and the time; `waited_s` was spent waiting for the user."""
    models = [(model.model or "(a model without a name)", _model(model)) for model in costs.by_model.values()]
    return [
        *models,
        ("Together", together(costs)),
        *_not_counted(costs.uncounted_replies),
        *_estimated(costs.estimated_replies),
        ("Time", _time(costs, waited_s)),
        ("Lines", f"{costs.lines_added:,} added, {costs.lines_removed:,} removed"),
    ]


def together(costs: SessionCosts) -> str:
    """Return the cost of all models."""
    is_estimated = costs.estimated_replies > 0
    return shown_cost(costs.known_cost_usd, is_whole=costs.cost_usd is not None, is_estimated=is_estimated)


def _time(costs: SessionCosts, waited_s: float) -> str:
    answers = f" (and {duration(waited_s)} for your answers)" if waited_s >= SHOWN_FROM_S else ""
    in_turns = max(costs.duration_s - waited_s, 0.0)
    return f"{duration(in_turns)} in turns{answers}, {duration(costs.api_duration_s)} of it waiting for models"


def _not_counted(replies: int) -> Sequence[tuple[str, str]]:
    if not replies:
        return ()
    what = "1 interrupted reply" if replies == 1 else f"{replies:,} interrupted replies"
    return (("Not counted", f"{what}: the provider had not reported the tokens yet"),)


def _estimated(replies: int) -> Sequence[tuple[str, str]]:
    if not replies:
        return ()
    what = "1 reply that was cut short or came" if replies == 1 else f"{replies:,} replies that were cut short or came"
    return (("Estimated", f"the cost of {what} without a credible count; it is in the sums"),)


def budget_pairs(budget: Budget) -> Sequence[tuple[str, str]]:
    """Return the spending and limits of the session and its subagents; empty if there are neither."""
    if not budget.children and budget.limits == NO_LIMITS:
        return ()
    return [("Spent", _spent(budget)), *_below(budget, 1)]


def _below(budget: Budget, depth: int) -> Iterator[tuple[str, str]]:
    for child in budget.children:
        yield f"{'·' * depth} {cut(child.name, MOST_NAME_CELLS)}", _spent(child)
        yield from _below(child, depth + 1)


def _spent(budget: Budget) -> str:
    """Return spending and limits, such as `3 requests, 12,345 of 50,000 tokens, $0.0123, 4.5 s`."""
    spent, limits = budget.spent, budget.limits
    usd = shown_cost(spent.known_usd, is_whole=spent.usd is not None, is_estimated=spent.is_estimated)
    parts = [
        _of(f"{spent.calls:,}", None if limits.calls is None else f"{limits.calls:,}", "request", spent.calls),
        _of(f"{spent.tokens:,}", None if limits.tokens is None else f"{limits.tokens:,}", "token", spent.tokens),
        usd if limits.usd is None else f"{usd} of ${limits.usd:.4f}",
        _of(duration(spent.seconds), None if limits.seconds is None else duration(limits.seconds)),
    ]
    return ", ".join(parts)


def _of(amount: str, limit: str | None, unit: str = "", number: int = 0) -> str:
    text = amount if limit is None else f"{amount} of {limit}"
    return f"{text} {unit}{'s' if number != 1 or limit is not None else ''}" if unit else text


def _model(costs: ModelCosts) -> str:
    usage, is_estimated = costs.usage, costs.estimated_replies > 0
    usd = shown_cost(costs.known_cost_usd, is_whole=costs.cost_usd is not None, is_estimated=is_estimated)
    return (
        f"{usage.input_tokens:,} input, {usage.output_tokens:,} output, "
        f"{usage.cache_read_input_tokens:,} read from the cache, "
        f"{usage.cache_creation_input_tokens:,} written to it; "
        f"{usd}"
    )


def duration(seconds: float) -> str:
    """Return a time in words: `42.1 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


async def _context(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    usage = await session.context_usage()
    terminal.display(*context_shapes(usage, terminal.width))
    say(terminal, context_note(usage, is_kept_short=session.settings.compaction.enabled), "dim")


async def _cost(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    costs = _costs(session)
    if not costs.by_model:
        say(terminal, "no model has answered in this session yet, so it cost nothing")
        return
    say_pairs(terminal, [*cost_pairs(costs, terminal.waited_s), *budget_pairs(session.budget)])


def _costs(session: Session) -> SessionCosts:
    """Return the costs of the session, including its subagents and rewound turns."""
    costs, spent = session_costs(session.conversation.messages), session.budget.spent
    return replace(costs, by_model=spent.by_model, api_duration_s=spent.api_duration_s)


async def _status(terminal: Terminal, rest: str) -> None:
    session = terminal.session
    info = session.info
    costs = _costs(session)
    usage = context_usage(session.conversation, session.context_window)
    places = Locations.find(info.cwd, terminal.env)
    branch = await to_thread.run_sync(git_branch, places.project_root)
    pairs = [
        ("Session", f"{info.id} {session.title or ''}".rstrip()),
        ("Folder", str(info.cwd)),
        ("Git branch", branch or "none"),
        ("Model", info.choice),
        ("Effort", session.effort or "the model's default"),
        ("Key", info.key_source),
        ("Mode", session.permission_mode),
        ("Context", used_line(usage)),
        ("Cost", together(costs)),
        ("Log", str(session.log_path)),
        ("panpan", __version__),
    ]
    say_pairs(terminal, [(name, clean_line(text)) for name, text in pairs])


# /doctor runs another panpan, as /config does, so that there is one answer to a question. The session itself adds what
# it knows better: its model and its terminal.

CHILD_TIMEOUT_S = 60.0
MAX_CHILD_BYTES = 500_000


async def _doctor(terminal: Terminal, rest: str) -> None:
    say(terminal, "looking …", "dim")
    printed, failure = await panpan_says(terminal, "doctor", "--json")
    try:
        found = json.loads(printed)
    except ValueError as error:
        raise PanpanError(f"`panpan doctor` failed: {failure or printed}") from error
    info = terminal.session.info
    better = {
        "terminal": f"{terminal.env.get('TERM') or 'TERM not set'}, {terminal.width} cells wide",
        "model": info.choice,
        "key": info.key_source,
    }
    checks = [
        {**check, "status": "ok", "found": better[check["name"]], "advice": ""} if check["name"] in better else check
        for check in found["checks"]
    ]
    say_pairs(terminal, [(check["name"], _line(check)) for check in checks])
    is_broken = any(check["status"] == "broken" for check in checks)
    say(
        terminal,
        f"\n{found['verdict'] if is_broken else f'panpan is ready; this session asks {info.choice}'}",
        "strong",
    )


def _line(check: Mapping[str, str]) -> str:
    status = "" if check["status"] == "ok" else check["status"]
    return clean_line(": ".join(filter(None, (status, check["found"], check["advice"]))))


async def panpan_says(terminal: Terminal, *arguments: str) -> tuple[str, str]:
    """Run a panpan command in another process; return its output and its error."""
    # -P: a module of that name in the folder must not be taken for one of ours. The environment is the user's own,
    # including keys, or the answer would be that of a different panpan.
    command = [sys.executable, "-P", "-m", "panpan", *arguments]
    env = {**terminal.env, "NO_COLOR": "1", "COLUMNS": str(terminal.width), "PYTHONUNBUFFERED": "1"}
    cwd = terminal.session.info.cwd
    ended = await capture(command, cwd=cwd, env=env, timeout_s=CHILD_TIMEOUT_S, max_bytes=MAX_CHILD_BYTES)
    if ended.timed_out:
        raise PanpanError(f"`panpan {' '.join(arguments)}` did not end within {CHILD_TIMEOUT_S:.0f} s and was stopped")
    return ended.stdout.decode(errors="replace").rstrip(), ended.stderr.decode(errors="replace").rstrip()


async def _feedback(terminal: Terminal, words: str) -> None:
    session, env = terminal.session, terminal.env
    facts = {
        **machine_facts(),
        "terminal": " ".join(filter(None, (env.get("TERM"), env.get("TERM_PROGRAM"), env.get("COLORTERM")))),
        "model": session.info.choice,
        "mode": session.permission_mode,
        "session": session.info.id,
    }
    pairs = [(name, clean_line(fact)) for name, fact in facts.items()]
    report = "".join(f"{name}: {fact}\n" for name, fact in pairs) + f"\n{words or '(write here what happened)'}\n"
    report = session_redactor(terminal).redact(report)
    places = Locations.find(session.info.cwd, env)
    try:
        path = await to_thread.run_sync(write_report, places.feedback_folder, report)
    except OSError as error:
        raise PanpanError(f"the report cannot be written: {error.strerror}") from error
    say_pairs(terminal, pairs)
    addresses = metadata.metadata("panpan").get_all("Project-URL") or []
    to_whom = ", ".join(address.partition(", ")[2] for address in addresses) or "those you have panpan from"
    say(terminal, f"nothing was sent; the report is {places.shown(path)}: complete it, and give it to {to_whom}")


SHOW_COMMANDS: Sequence[Command] = (
    Command("context", "Show what fills the context window", _context, is_immediate=True),
    Command("cost", "Show tokens, money and time", _cost, aliases=("usage",), is_immediate=True),
    Command("status", "Show session, model, mode and version", _status, is_immediate=True),
    Command(
        "feedback",
        "Write a report about panpan, with versions, for you to send",
        _feedback,
        arguments="[words]",
        aliases=("bug",),
        is_immediate=True,
    ),
    Command("doctor", "Show what panpan finds on this machine", _doctor, is_immediate=True),
)
