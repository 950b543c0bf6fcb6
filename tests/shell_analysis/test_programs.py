import pytest

from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.programs import load_table, read_table
from tests.shell_analysis.table_rows import all_rows, harmless_lines, refused_lines

ROWS = all_rows()
HARMLESS = [line for name, row in ROWS.items() for line in harmless_lines(name, row)]
REFUSED = [line for name, row in ROWS.items() for line in refused_lines(name, row)]

WRAPPERS = [
    "{}&", "$({})", "`{}`", "{} >x", "X=1 {}", "env {}", "sudo {}", "eval {}", "({}) >x", "{{ {}; }} >x", "({})&",
    "nohup {}", "nice {}", "stdbuf -o0 {}", "command {}", "builtin {}", "exec {}", "{} <(ls)", "if {}; then ls; fi",
    "{} 2>x", "timeout -s KILL 5 {}", "{} \u202e", "for x in 1; do {}; done", "f() {{ {}; }}", "{} <<< x", "{}\rls",
    "env -i {}", "setsid {}", "ionice {}", "{} | sh", "{}; rm x", "rm x || {}",
]  # fmt: skip


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_examples_of_a_row_are_read_only(line: str) -> None:
    facts = analyse(line)

    assert facts.is_read_only, [effect.why for effect in facts.effects]


@pytest.mark.parametrize("line", REFUSED)
def test_refused_examples_of_a_row_are_not_read_only(line: str) -> None:
    assert not analyse(line).is_read_only


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_a_reason_a_source_and_examples(name: str) -> None:
    row = ROWS[name]

    assert row.reason.endswith(".")
    assert row.source
    assert row.match
    assert row.no_match or name == "echo"


@pytest.mark.parametrize("name", sorted(load_table().never.keys() - load_table().programs.keys()))
def test_never_harmless_program_has_a_reason_and_no_form(name: str) -> None:
    for arguments in ("", "--version", "-h", "x"):
        [effect] = analyse(f"{name} {arguments}".strip()).effects

        assert not effect.is_read_only
        assert effect.runs_code
        assert load_table().never[name] in effect.why


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapper_makes_nothing_read_only(wrapper: str) -> None:
    for line in (HARMLESS + REFUSED)[::5]:
        assert not analyse(wrapper.format(line)).is_read_only


@pytest.mark.parametrize(
    "wrapper",
    ["timeout 5 {}", "  {}  ", "{}; ls", "ls\n{}", "{} 2>/dev/null", "! {}", "{} | cat", "({})", "{{ {}; }}",
     "(cd src; {})", "{{ {}\n}} 2>&1 | cat", "time {}", "time -p {} | cat", "[[ -f a ]] || {}"],
)  # fmt: skip
def test_neutral_wrapper_keeps_the_verdict(wrapper: str) -> None:
    for line in HARMLESS[::3]:
        # `cd` and `exit` lead elsewhere; a `-` before `2>` and a bracket behind `time` the parser holds for odd.
        if not line.startswith(("cd ", "exit", "[")) and not line.endswith(" -"):
            assert analyse(wrapper.format(line)).is_read_only, line
    for line in REFUSED[::3]:
        assert not analyse(wrapper.format(line)).is_read_only


_ROW = 'reason = "x."\nsource = "x"\noperands = "none"\nmatch = [""]\nno_match = ["x"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[programs.x]\n{_ROW}reasons = 1\n", "the row x says reasons"),
        (f'[programs.x]\n{_ROW}[programs.y]\nalso = ["x"]\n{_ROW}', "x has two rows"),
    ],
)
def test_wrong_row_is_a_fault(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(text)
