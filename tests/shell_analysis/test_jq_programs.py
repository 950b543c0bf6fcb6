"""Programs of jq: what only computes, and what could read further files."""

import pytest

from panpan.shell_analysis.languages import only_computes

ORDINARY = [
    ".", ".a", ".[]", ".a[0].b?", ".scripts | keys[]", '.["a b"]', ".[] | select(.x == 1)", "{name, version}",
    "{a: 1, import: 2, b}", "{(.a): .b}", '.[] | "\\(.a): \\(.b | length)"', '"\\(.a | join(", "))"', "map(.x) | add",
    "to_entries[] | \"\\(.key)=\\(.value)\"", ".import", ".[1:3]", ".a // empty", "..", "[.[] | {id, t: .title}]",
    'if .a then "include" else "import \\"a\\" as $x;" end', "reduce .[] as $x (0; . + $x)", '@base64 "x\\(.)"',
    "$ENV.HOME", "group_by(.a)[] | {a: .[0].a, n: length}", ". as [$a, $b] | $a", '.a | test("^x"; "i")',
    '.["a"].b |= 1', "try error catch .", "[limit(3; .[])]", "label $out | break $out", "-1", "1.5 + .a", "",
]  # fmt: skip
READING = [
    'import "a" as $x; .', 'import "a" as x; .', 'include "a"; .', '"a" | modulemeta', "get_search_list",
    "[modulemeta]",
    ".[modulemeta:]", ".[1, modulemeta:2]", "{a: modulemeta}", "{(modulemeta): 1}", "{a: 1, b: modulemeta}",
    '"\\(modulemeta)"', '"\\(.a)" + import "b"', '"\\("x")" | modulemeta', '"\\(.a)" import "b)"', '"a" import "b"',
    "# x\nimport", "1 # \\\nmodulemeta", '"\\(.a)', ".a)", "(.a]", '"', "no_such_function", "def f: .; f",
    "{modulemeta: (1, modulemeta)}", "{a: [1, modulemeta]}", "{$x, modulemeta: modulemeta}", "{a} | modulemeta",
    '"\\u0022 | modulemeta', ".\nmodulemeta", "`x`", "'", "{a: if 1, modulemeta then 1 else 2 end}",
    "end", "if . then 1",
]  # fmt: skip


@pytest.mark.parametrize("program", ORDINARY)
def test_ordinary_jq_programs_only_compute(program: str) -> None:
    assert only_computes(program)


@pytest.mark.parametrize("program", READING)
def test_jq_programs_that_may_read_files_do_not_pass(program: str) -> None:
    assert not only_computes(program)
