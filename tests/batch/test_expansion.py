"""Tasks of a campaign: axes, placeholders, ids, and what is too much."""

import subprocess
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.batch.definition.campaign import Campaign
from panpan.batch.definition.expansion import digest_of, expand
from panpan.batch.store.records import Task
from panpan.errors import ConfigError

HERE = Path("/nonexistent/campaign")
"""A folder that inline tasks never look at."""


def campaign_of(prompt: str = "Do it.", **tables: Any) -> Campaign:
    return Campaign.model_validate({"task": [{"id": "t", "prompt": prompt}], **tables})


def expanded(prompt: str = "Do it.", **tables: Any) -> list[Task]:
    return list(expand(campaign_of(prompt, **tables), HERE, {}))


def refusal(**tables: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        expanded(**tables)
    return str(caught.value)


def test_axes_are_combined_in_the_order_of_the_file() -> None:
    tasks = expanded("Use {seed} and {kind}.", axes={"seed": [1, 2], "kind": ["a", "b"]})
    assert [task.prompt for task in tasks] == ["Use 1 and a.", "Use 1 and b.", "Use 2 and a.", "Use 2 and b."]
    assert [dict(task.axes) for task in tasks][1] == {"seed": 1, "kind": "b"}
    assert {task.name for task in tasks} == {"t"}


def test_axis_model_chooses_the_model() -> None:
    tasks = expanded(model="vendor/usual", axes={"model": ["vendor/one", "vendor/two"]})
    assert [task.model for task in tasks] == ["vendor/one", "vendor/two"]
    assert [task.model for task in expanded(model="vendor/usual")] == ["vendor/usual"]


def test_misspelt_placeholder_of_an_unused_axis_is_refused() -> None:
    message = refusal(prompt="Use {seed}.", axes={"sead": [1]})
    assert message == (
        "campaign.toml: axes.sead stands in no prompt, but campaign.toml: task 1 has {seed}; give both the same name"
    )
    assert "axes.split stands in no prompt" in refusal(verify="test {spilt}", axes={"split": ["a"]})


@pytest.mark.parametrize(
    ("prompt", "axes"),
    [("Do it.", {"seed": [1]}), ("Use {seeds} and {seed}.", {"seed": [1]}), ("Write {mean}.", {"seed": [1]})],
)
def test_axis_or_braces_alone_are_no_mistake(prompt: str, axes: Any) -> None:
    assert len(expanded(prompt, axes=axes)) == 1


def test_inserted_values_are_not_expanded_again() -> None:
    tasks = expanded("{note} {seed}", axes={"note": ["{seed} {{seed}}"], "seed": [7]})
    assert tasks[0].prompt == "{seed} {{seed}} 7"


def test_values_are_written_as_in_toml() -> None:
    tasks = expanded("{flag} {rate}", axes={"flag": [True, False], "rate": [0.5]})
    assert [task.prompt for task in tasks] == ["true 0.5", "false 0.5"]


@given(st.text(alphabet="{}abseed \n\\$", max_size=60))
def test_unknown_braces_stay_as_they_are(prompt: str) -> None:
    written = f"x{prompt}x"
    campaign = campaign_of(written, axes={"other": [1, 2]})
    assert {task.prompt for task in expand(campaign, HERE, {})} == {written}


@given(st.lists(st.sets(st.integers(-50, 50), min_size=1, max_size=5), max_size=4), st.integers(1, 4))
def test_tasks_are_as_many_as_the_product(axes: list[set[int]], written: int) -> None:
    product = written
    for values in axes:
        product *= len(values)
    campaign = Campaign.model_validate(
        {
            "task": [{"id": f"t{number}", "prompt": "Go."} for number in range(written)],
            "axes": {f"axis{number}": sorted(values) for number, values in enumerate(axes)},
        }
    )
    tasks = expand(campaign, HERE, {})
    assert len(tasks) == len({task.id for task in tasks}) == product


values = st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False))
names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)


@given(st.dictionaries(names, values, max_size=5), st.randoms())
def test_ids_do_not_depend_on_the_order_of_keys(axes: dict[str, Any], random: Any) -> None:
    shuffled = list(axes.items())
    random.shuffle(shuffled)
    first, second = (digest_of("t", "p", axes=one, model=None, files=[], verify=None) for one in (axes, dict(shuffled)))
    assert first == second


@given(st.dictionaries(names, values, max_size=5), st.text(max_size=30))
def test_tasks_are_read_back_as_they_are(axes: dict[str, Any], prompt: str) -> None:
    id_ = digest_of("t", prompt, axes=axes, model=None, files=[], verify=None)
    task = Task(id=id_, name="t", prompt=prompt, axes=axes)
    back = Task.model_validate_json(task.model_dump_json())
    assert back == task
    assert digest_of("t", back.prompt, axes=back.axes, model=None, files=[], verify=None) == id_


def test_ids_stay_the_same_between_versions() -> None:
    # The canonical JSON is spelled out here, since folders of older campaigns hold such ids.
    canonical = '{"axes":{"rate":0.5,"seed":1},"model":"m","name":"t","prompt":"\\u00fc","verify":{"command":"make"}}'
    axes = {"seed": 1, "rate": 0.5}
    found = expanded("ü", model="m", verify="make", axes={name: [value] for name, value in axes.items()})
    assert found[0].id == blake2b(canonical.encode(), digest_size=8).hexdigest()


def test_every_field_counts_for_the_id() -> None:
    first = expanded()[0].id
    others = [
        expanded("Do that."),
        expanded(model="m"),
        expanded(verify="make"),
        expanded(axes={"seed": [1]}),
        list(expand(Campaign.model_validate({"task": [{"id": "u", "prompt": "Do it."}]}), HERE, {})),
        list(expand(Campaign.model_validate({"task": [{"id": "t", "prompt": "Do it.", "files": ["a"]}]}), HERE, {})),
    ]
    assert len({first, *(tasks[0].id for tasks in others)}) == 7


def test_verify_of_a_task_stands_before_that_of_all() -> None:
    campaign = Campaign.model_validate(
        {"verify": "make", "task": [{"id": "a", "prompt": "p", "verify": "own"}, {"id": "b", "prompt": "p"}]}
    )
    commands = [task.verify.command if task.verify else None for task in expand(campaign, HERE, {})]
    assert commands == ["own", "make"]


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_verify_gets_values_as_single_words(value: str) -> None:
    (task,) = expanded(verify="printf %s {value}; : {other}", axes={"value": [value]})
    assert task.verify is not None
    ran = subprocess.run(["/bin/sh", "-c", task.verify.command], capture_output=True, check=True)
    assert ran.stdout == value.encode()
    assert task.verify.command.endswith("; : {other}")


@pytest.mark.parametrize(
    "command",
    [
        "echo '{v}'",
        'echo "{v}"',
        'echo "a b" "$(cat "{v}")"',
        "echo \\{v}",
        "cat <<E\n{v}\nE",
        "echo `{v}`",
        "# it's\n{v}",
    ],
)
def test_verify_refuses_values_in_quotes(command: str) -> None:
    assert "write the placeholder without quotes" in refusal(verify=command, axes={"v": ["$(touch x)"]})


def test_verify_takes_plain_values_in_quotes() -> None:
    (task,) = expanded(verify='cat "out-{seed}.csv"', axes={"seed": [3]})
    assert task.verify is not None
    assert task.verify.command == 'cat "out-3.csv"'


def test_huge_product_is_refused_with_its_number() -> None:
    tasks = [{"id": f"t{number}", "prompt": "p"} for number in range(10)]
    message = refusal(task=tasks, axes={"seed": list(range(100)), "variant": list(range(1000))})
    assert "1,000,000 tasks (10 tasks × seed (100) × variant (1,000)); at most 100,000" in message  # noqa: RUF001


def test_product_beyond_memory_is_counted_and_not_built() -> None:
    axes = {f"axis{number}": list(range(100)) for number in range(20)}
    assert f"{100**20:,} tasks" in refusal(axes=axes)


def test_too_many_attempts_are_refused() -> None:
    assert "2,000,000 attempts" in refusal(attempts=1000, axes={"seed": list(range(2000))})


@pytest.mark.parametrize("twice", [["a", "b", "a"], [1, "1"], [True, "true"]])
def test_value_that_is_twice_in_an_axis_is_refused(twice: list[Any]) -> None:
    assert "axes.seed has" in refusal(axes={"seed": twice})


def test_empty_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 item"):
        campaign_of(axes={"seed": []})


def test_prompt_that_no_command_line_holds_is_refused() -> None:
    assert "has 120,006 bytes; at most 120,000" in refusal(prompt="{v}" + "x" * 120_000, axes={"v": ["ü" * 3]})
    assert "NUL" in refusal(prompt="a\0b")
    assert "NUL" in refusal(axes={"v": ["a\0b"]})


def test_prompts_that_fill_the_memory_are_refused() -> None:
    assert "more than 256,000,000" in refusal(prompt="x" * 110_000, axes={"seed": list(range(2_400))})
