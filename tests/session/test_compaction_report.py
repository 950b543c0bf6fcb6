"""The report of a compaction to the user, in every face."""

from panpan.faces.headless.output_formats import notice_line
from panpan.faces.turn_text import ToolLines
from panpan.session.descriptions import compaction_lines
from panpan.types.events import Compacted
from panpan.types.messages import Compaction, CompactionReport

REPORT = CompactionReport(
    kept=7, pinned=2, quoted=3, computed="4 files read", summarised=40, outputs=1, problem="the model refused"
)
COMPACTION = Compaction("auto", "u", 150_000, 24_000, report=REPORT)


def test_compaction_report_lists_its_parts_and_the_way_back() -> None:
    assert compaction_lines(COMPACTION) == [
        "conversation compacted, the context window was nearly full: about 150,000 → 24,000 tokens",
        "kept: 7 newest messages, and 2 older (project rules, the prompt)",
        "quoted in your words: 3 messages of yours",
        "computed: 4 files read",
        "summarised by the model: 40 messages",
        "dropped: 1 output of tools, replaced by a note",
        "no summary: the model refused; the computed record takes its place",
        "the session's log keeps all of it; /compact undo restores it",
    ]


def test_compaction_report_is_printed_by_line_faces() -> None:
    lines = ToolLines().lines(Compacted(COMPACTION))

    assert [line.removeprefix("… ") for line in lines] == compaction_lines(COMPACTION)


def test_compaction_report_reaches_programs_under_known_names() -> None:
    line = notice_line(Compacted(COMPACTION), "s")

    assert (line["type"], line["subtype"], line["session_id"]) == ("system", "compact_boundary", "s")
    assert line["compact_metadata"]["trigger"] == "auto"
    assert (line["compact_metadata"]["pre_tokens"], line["compact_metadata"]["post_tokens"]) == (150_000, 24_000)
    overflow = notice_line(Compacted(Compaction("overflow", "u", 2, 1)), "s")
    assert overflow["compact_metadata"]["trigger"] == "auto"
    assert overflow["compact_metadata"]["cause"] == "overflow"
