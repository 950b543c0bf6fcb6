from panpan.capabilities.environment.layers import (
    ADVICE,
    LAYERS,
    MAX_DETAILS,
    EnvReport,
    Finding,
    constraint_rows,
    detail_lines,
    heading,
    in_order,
    layer_rows,
    make_constraint,
    unread_lines,
    verdict_lines,
)


def report(*rules: str, findings: tuple[Finding, ...] = (), unread: tuple[str, ...] = ()) -> EnvReport:
    constraints = [make_constraint(rule, "broken", f"what {rule} needs", "not that") for rule in rules]
    return EnvReport(
        environment="/env", chosen="it was named", findings=findings, constraints=in_order(constraints), unread=unread
    )


def test_lowest_broken_layer_comes_first() -> None:
    broken = report("dependency", "driver-version", "python-abi", "processor", "gpu-library")

    assert [one.layer for one in broken.constraints] == [*reversed(LAYERS)]
    assert broken.first_broken_layer == "hardware"
    assert broken.what_to_do == ADVICE["processor"].text
    assert [row.state for row in layer_rows(broken)] == ["broken"] * 5


def test_constraint_that_holds_needs_no_advice() -> None:
    constraint = make_constraint("dependency", "holds", "a", "b")

    assert constraint.advice == ""
    assert all(advice.text and advice.layer in LAYERS for advice in ADVICE.values())


def test_layer_row_has_its_headlines() -> None:
    found = (
        Finding(layer="python", name="python", value="3.11.4"),
        Finding(layer="python", name="numpy", value="1.26.4"),
        *(Finding(layer="hardware", name="GPU", value=f"card {number}") for number in range(8)),
    )

    python, _, toolkit, _, hardware = layer_rows(report(findings=found))

    assert python.text.endswith("  python 3.11.4")
    assert toolkit.text.endswith("  nothing found")
    assert hardware.text.endswith("  GPU card 0, card 1 and 6 more")


def test_foreign_names_neither_drive_terminals_nor_forge_lines() -> None:
    evil = "a\x1b[2J\nno layer is broken\u202e" + "x" * 1_000
    found = (Finding(layer="python", name=evil, value=evil, source=evil),)
    one = EnvReport(
        environment=evil,
        chosen=evil,
        findings=found,
        constraints=(make_constraint("dependency", "broken", evil, evil),),
        unread=(evil,),
    )

    lines = [heading(one), *verdict_lines(one), *detail_lines(one, "python"), *unread_lines(one)]
    lines += [row.text for row in (*layer_rows(one), *constraint_rows(one))]

    assert all(line.isprintable() and len(line) < 400 for line in lines)


def test_details_beyond_the_limit_are_counted() -> None:
    found = tuple(Finding(layer="binary", name=f"m{number}.so", value="") for number in range(MAX_DETAILS + 5))

    lines = detail_lines(report(findings=found), "binary")

    assert len(lines) == MAX_DETAILS + 1
    assert lines[-1] == "… and 5 more"
