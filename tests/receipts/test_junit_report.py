"""JUnit reports of several programs are counted; what is none is refused."""

from datetime import UTC, datetime, timedelta
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.receipts.reports.junit_report import MAX_BYTES, NotAReportError, read_junit

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1"
 failures="1" skipped="2" tests="5" time="0.157" timestamp="2026-11-30T05:57:53.689751+00:00" hostname="vm">
<testcase classname="tests.test_a" name="test_one" time="0.000" />
<testcase classname="tests.test_a.TestB" name="test_two"><failure message="assert 0">text</failure></testcase>
<testcase classname="tests.test_a.TestB" name="test_two"><error message="teardown">text</error></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped type="pytest.skip" message="no"/></testcase>
<testcase classname="tests.test_a" name="test_four"><skipped type="pytest.xfail" message=""/></testcase>
</testsuite></testsuites>"""

SUREFIRE = b"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:noNamespaceSchemaLocation="https://maven.apache.org/surefire/maven-surefire-plugin/xsd/surefire-test-report.xsd"
 version="3.0" name="org.example.AppTest" time="0.05" tests="3" errors="0" skipped="0" failures="1">
<properties><property name="java.version" value="17"/></properties>
<testcase name="passes" classname="org.example.AppTest" time="0.01"/>
<testcase name="isFlaky" classname="org.example.AppTest"><flakyFailure message="first"/></testcase>
<testcase name="fails" classname="org.example.AppTest"><failure/><rerunFailure/><system-out>x</system-out></testcase>
</testsuite>"""

NEXTEST = b"""<testsuites name="nextest-run" tests="2" failures="0" errors="0" uuid="1"
 timestamp="2026-11-30T05:57:53.689+00:00" time="0.1"><testsuite name="crate" tests="2" disabled="0" errors="0"
 failures="0"><testcase name="a::b" classname="crate" timestamp="2026-11-30T05:57:53.689+00:00"/>
<testcase name="a::c" classname="crate"/></testsuite></testsuites>"""

JEST = b"""<testsuites name="jest tests" tests="2" failures="0" errors="0" time="1.2">
<testsuite name="sum" errors="0" failures="0" skipped="1" timestamp="2026-11-30T05:57:53" tests="2"
 file="src/sum.test.js">
<testcase classname="sum adds" name="sum adds"/><testcase classname="sum" name="sum"><skipped/></testcase>
</testsuite></testsuites>"""

CTEST = b"""<testsuite name="Linux-c++" tests="3" failures="1" disabled="1" skipped="0" hostname="" time="0"
 timestamp="2026-11-30T05:57:53"><testcase name="a" classname="a" status="run"/>
<testcase name="b" classname="b" status="fail"><failure message=""/></testcase>
<testcase name="c" classname="c" status="disabled"/></testsuite>"""

GRADLE = b"""<testsuite name="org.example.LibraryTest" tests="1" skipped="0" failures="0" errors="0"
 timestamp="2026-11-30T05:57:53.111Z" hostname="vm" time="0.01"><properties/>
<testcase name="passes()" classname="org.example.LibraryTest"/><system-out><![CDATA[<testcase/>]]></system-out>
</testsuite>"""


@pytest.mark.parametrize(
    ("data", "framework", "counts"),
    [
        (PYTEST, "pytest", (1, 2, 2)),
        (SUREFIRE, "surefire", (2, 1, 0)),
        (NEXTEST, "nextest", (2, 0, 0)),
        (JEST, "jest", (1, 0, 1)),
        (CTEST, "junit", (1, 1, 1)),
        (GRADLE, "junit", (1, 0, 0)),
    ],
)
def test_report_of_each_program_is_counted(data: bytes, framework: str, counts: tuple[int, int, int]) -> None:
    report = read_junit(data)
    assert report.framework == framework
    assert (report.passed, report.failed, report.skipped) == counts


def test_report_names_failed_tests_and_their_places() -> None:
    report = read_junit(PYTEST)
    assert report.failed_names == ["tests.test_a.TestB::test_two"]
    assert report.classes == ["tests.test_a", "tests.test_a.TestB"]
    assert read_junit(JEST).files == ["src/sum.test.js"]


def test_report_counts_passed_tests_by_class_and_by_file() -> None:
    cases = """<testsuites><testsuite name="x">
        <testcase classname="tests.test_a" name="one"/>
        <testcase classname="tests.test_a" name="two"><failure/></testcase>
        <testcase classname="C" name="one" file="src/c.test.js"/>
        <testcase classname="D" name="one" file="src/c.test.js"/>
        <testcase classname="D" name="two" file="src/c.test.js"><skipped/></testcase>
    </testsuite></testsuites>"""

    assert read_junit(cases.encode()).passed_by == {"tests.test_a": 1, "src/c.test.js": 2}


@pytest.mark.parametrize("data", [PYTEST, JEST, CTEST, GRADLE])
def test_report_says_when_it_was_made(data: bytes) -> None:
    made = datetime(2026, 11, 30, 5, 57, 53, tzinfo=UTC)
    report = read_junit(data)
    second = timedelta(seconds=1)
    assert report.is_made_between(made - second, made + second)
    assert not report.is_made_between(made + timedelta(days=2), made + timedelta(days=3))
    assert not report.is_made_between(made - timedelta(days=3), made - timedelta(days=2))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"12 passed",
        b"<coverage/>",
        b"<testsuite>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><testsuite name="&a;"/>',
        b'<!DOCTYPE testsuite SYSTEM "http://example.org/a.dtd"><testsuite/>',
        b"<testsuites>" + b"<testsuite>" * 10_000,
        b'<?xml version="1.0" encoding="nonsense"?><testsuite/>',
        b"\xff\xfe<",
        bytes(MAX_BYTES + 1),
    ],
)
def test_reader_refuses_what_is_no_report(data: bytes) -> None:
    with pytest.raises(NotAReportError):
        read_junit(data)


def test_stated_failures_count_where_no_case_shows_them() -> None:
    suite = b'<testsuite name="x" tests="1" failures="0" errors="3"><testcase name="a"/></testsuite>'
    assert read_junit(b"<testsuites>" + suite + b"</testsuites>").failed == 3


def test_names_of_strangers_are_bounded_and_printable() -> None:
    name = quoteattr("\u001b[31m".replace("\u001b", "\u009b") + "x" * 5_000)
    report = read_junit(f"<testsuite><testcase name={name}><failure/></testcase></testsuite>".encode())
    assert len(report.failed_names[0]) == 200
    assert report.failed_names[0].isprintable()


@given(st.lists(st.sampled_from(["", "<failure/>", "<error/>", "<skipped/>"]), max_size=30))
def test_each_case_counts_once(outcomes: list[str]) -> None:
    cases = "".join(f'<testcase name="{number}">{outcome}</testcase>' for number, outcome in enumerate(outcomes))
    report = read_junit(f"<testsuites><testsuite>{cases}</testsuite></testsuites>".encode())
    failed = outcomes.count("<failure/>") + outcomes.count("<error/>")
    assert (report.passed, report.failed, report.skipped) == (outcomes.count(""), failed, outcomes.count("<skipped/>"))


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(tail: bytes) -> None:
    for head in (b"", b"<testsuite ", b"<testsuite>", PYTEST[:200]):
        try:
            read_junit(head + tail)
        except NotAReportError:
            continue
