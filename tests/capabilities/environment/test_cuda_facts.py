import pytest

from panpan.capabilities.environment.driver_layer import (
    capability_of,
    driver_text,
    gpu_name,
    numbers,
    oldest_driver,
)
from panpan.capabilities.environment.toolkit_layer import GPU_LIBRARY, local_platform


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA H100 80GB HBM3", (9, 0)),
        ("NVIDIA GH200 480GB", (9, 0)),
        ("NVIDIA B200", (10, 0)),
        ("NVIDIA GeForce RTX 5090", (12, 0)),
        ("NVIDIA A100-SXM4-40GB", (8, 0)),
        ("NVIDIA A10", (8, 6)),
        ("NVIDIA A10G", (8, 6)),
        ("NVIDIA RTX A6000", (8, 6)),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", (8, 6)),
        ("NVIDIA L4", (8, 9)),
        ("NVIDIA L40S", (8, 9)),
        ("NVIDIA RTX 6000 Ada Generation", (8, 9)),
        ("NVIDIA GeForce RTX 4090", (8, 9)),
        ("Tesla T4", (7, 5)),
        ("NVIDIA GeForce GTX 1650 Ti", (7, 5)),
        ("Quadro RTX 8000", (7, 5)),
        ("Tesla V100-SXM2-16GB", (7, 0)),
        ("Tesla P100-PCIE-16GB", (6, 0)),
        ("NVIDIA GeForce GTX 1080 Ti", (6, 1)),
        ("Tesla K80", (3, 7)),
        ("NVIDIA T400 4GB", None),
        ("NVIDIA Z9000", None),
        ("", None),
    ],
)
def test_compute_capability_is_known_by_name_or_unknown(name: str, capability: tuple[int, int] | None) -> None:
    assert capability_of(name) == capability


def test_numbered_gpus_all_have_a_capability() -> None:
    assert gpu_name("0x2330") == "NVIDIA H100 80GB HBM3"
    assert gpu_name("0xffff") == ""
    assert all(capability_of(gpu_name(device)) for device in ("0x20b0", "0x2204", "0x2342", "0x26b9", "0x2684"))


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("13.0", "580"), ("12.8", "525.60.13"), ("11.8", "450.80.02"), ("10.2", "440.33"), ("8.0", ""), ("", "")],
)
def test_oldest_driver_is_known_from_cuda_9_2_on(cuda: str, driver: str) -> None:
    assert driver_text(oldest_driver(numbers(cuda)) or ()) == driver


@pytest.mark.parametrize(
    ("text", "version"),
    [("12.1.105", (12, 1, 105)), ("535.129.03", (535, 129, 3)), ("6.0-91", (6, 0)), ("abc", ()), ("", ()), (".", ())],
)
def test_version_numbers_are_those_it_begins_with(text: str, version: tuple[int, ...]) -> None:
    assert numbers(text) == version


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.3.0+cu121", ("cuda", (12, 1))),
        ("1.10.0+cu102", ("cuda", (10, 2))),
        ("1.5.0+cu92", ("cuda", (9, 2))),
        ("2.3.0+rocm6.0", ("rocm", (6, 0))),
        ("2.3.0+cpu", ("cpu", ())),
        ("2.3.0+git123", None),
        ("2.3.0", None),
    ],
)
def test_local_version_names_the_build_target(version: str, said: tuple[str, tuple[int, ...]] | None) -> None:
    assert local_platform(version) == said


def test_gpu_runtime_libraries_are_told_from_others() -> None:
    of_gpus = ["libcudart.so.12", "libcudnn_ops_infer.so.8", "libnccl.so.2", "libcusparseLt-f80c68d1.so.0"]
    others = ["libcurl.so.4", "libcuda.so.1", "libtorch_cuda.so", "libcudart"]

    assert all(GPU_LIBRARY.fullmatch(name) for name in of_gpus)
    assert not any(GPU_LIBRARY.fullmatch(name) for name in others)
