from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.capabilities.environment.env_doctor import MAX_OF_A_KIND, diagnose
from panpan.capabilities.environment.layers import ADVICE, EnvReport, Layer, State
from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot
from tests.capabilities.environment.machines import MACHINES, NOT_BROKEN, a_machine
from tests.fakes.machines import PROJECT


def report_of(build: Callable[[Path], None], root: Path) -> EnvReport:
    build(root)
    machine = MachineRoot(root)
    return diagnose(machine, find_environment(machine, PROJECT, {}), {}, PROJECT)


@pytest.mark.parametrize(("build", "expected"), MACHINES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_first_broken_layer_is_found_with_its_advice(
    build: Callable[[Path], None], expected: tuple[Layer, str] | None, tmp_path: Path
) -> None:
    report = report_of(build, tmp_path)

    first = report.first_broken
    assert (first and (first.layer, first.rule)) == expected, report.constraints
    assert report.what_to_do.endswith(ADVICE[expected[1]].text if expected else "")
    assert report.unread == ()


@pytest.mark.parametrize(("build", "expected"), NOT_BROKEN.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_uncertain_constraint_is_told_but_not_broken(
    build: Callable[[Path], None], expected: tuple[str, State], tmp_path: Path
) -> None:
    report = report_of(build, tmp_path)

    assert expected in {(one.rule, one.state) for one in report.constraints}
    assert report.first_broken is None


def test_constraint_kinds_all_have_a_machine() -> None:
    broken = {expected[1] for expected in MACHINES.values() if expected}
    others = {rule for rule, _ in NOT_BROKEN.values()}

    assert broken | others == set(ADVICE)


def test_findings_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    def build(root: Path) -> None:
        machine = a_machine(root)
        machine.package("wants", "1.0", requires=[f"other-{number}" for number in range(MAX_OF_A_KIND + 7)])

    broken = [one.needs for one in report_of(build, tmp_path).constraints if one.state == "broken"]

    assert len(broken) == MAX_OF_A_KIND + 1
    assert broken[0] == "wants 1.0 needs other-0"
    assert broken[-1] == "7 more of this kind"


@pytest.mark.parametrize(
    ("tag", "rule"),
    [
        ("py3-none-any", None),
        ("py2.py3-none-any", None),
        ("cp311-cp311-manylinux2014_x86_64", None),
        ("cp37-abi3-manylinux_2_28_x86_64", None),
        ("py3-none-manylinux1_x86_64", None),
        ("cp311-cp311-manylinux_2_39_x86_64.manylinux_2_17_x86_64", None),
        ("cp311-none-linux_x86_64", None),
        ("odd", None),
        ("cp312-cp312-manylinux2014_x86_64", "python-abi"),
        ("cp312-abi3-manylinux2014_x86_64", "python-abi"),
        ("cp311-cp311t-manylinux2014_x86_64", "python-abi"),
        ("cp311-cp311-manylinux_2_36_x86_64", "glibc"),
        ("cp311-cp311-manylinux2014_aarch64", "architecture"),
        ("cp311-cp311-musllinux_1_2_x86_64", "c-library"),
        ("cp311-cp311-win_amd64", "architecture"),
        ("cp311-cp311-macosx_11_0_arm64", "architecture"),
    ],
)
def test_wheel_tag_is_compared_with_python_and_system(tag: str, rule: str | None, tmp_path: Path) -> None:
    report = report_of(lambda root: a_machine(root, glibc=35).package("thing", "1.0", tag=tag), tmp_path)

    assert (report.first_broken and report.first_broken.rule) == rule
