"""A compaction in words, for people: what was kept, computed, summarised and dropped."""

from collections.abc import Sequence

from panpan.types.compaction import Compaction, CompactionTrigger

_WHY: dict[CompactionTrigger, str] = {
    "auto": "the context window was nearly full",
    "overflow": "the request was too long for the provider",
    "manual": "as you wanted",
    "undo": "taken back",
}


def compaction_lines(compaction: Compaction) -> Sequence[str]:
    """Return it in one or more lines; the first says what happened, the others what became of what."""
    report, sizes = compaction.report, f"about {compaction.tokens_before:,} → {compaction.tokens_after:,} tokens"
    if compaction.trigger == "undo":
        return (f"the compaction is taken back: {sizes}; the model gets {_many(report.kept, 'message')} again",)
    lines = [f"conversation compacted, {_WHY[compaction.trigger]}: {sizes}", f"kept: {_kept(compaction)}"]
    if report.quoted:
        lines.append(f"quoted in your words: {_many(report.quoted, 'message')} of yours")
    if report.computed:
        lines.append(f"computed: {report.computed}")
    if report.summarised:
        lines.append(f"summarised by the model: {_many(report.summarised, 'message')}")
    if report.dropped or report.outputs:
        lines.append(f"dropped: {_dropped(compaction)}")
    if report.problem:
        lines.append(f"no summary: {report.problem}; the computed record stands in its place")
    lines.append("all of it is in the session's log; /compact undo takes it back")
    return lines


def compaction_line(compaction: Compaction) -> str:
    """Return it in one line."""
    return "; ".join(compaction_lines(compaction))


def _kept(compaction: Compaction) -> str:
    report = compaction.report
    older = f", and {report.pinned:,} older (project rules, the prompt)" if report.pinned else ""
    return f"{_many(report.kept, 'newest message')}{older}"


def _dropped(compaction: Compaction) -> str:
    report = compaction.report
    parts = []
    if report.dropped:
        parts.append(_many(report.dropped, "message"))
    if report.outputs:
        parts.append(f"{_many(report.outputs, 'output')} of tools, which a note stands for")
    return ", ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
