"""The wheel, and the core of it alone in an empty environment; `make wheel` tries every extra."""

from __future__ import annotations

from pathlib import Path

import build_wheel
import pytest

from tickler.distribution import DISTRIBUTION


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel.build(tmp_path_factory.mktemp("dist"))


def test_the_wheel_has_the_name_that_messages_tell_people_to_install(built: Path) -> None:
    assert built.name.startswith(f"{DISTRIBUTION}-")


def test_the_wheel_has_every_file_of_the_package(built: Path) -> None:
    assert build_wheel.missing_files(built) == []


def test_the_core_works_alone_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    assert build_wheel.check(built, "", tmp_path / "environment") is None


@pytest.mark.parametrize("name", build_wheel.APPS)
def test_each_application_is_a_distribution_of_its_own(name: str, tmp_path: Path) -> None:
    project = build_wheel.ROOT / "apps" / name
    wheel = build_wheel.build(tmp_path / "dist", project)
    assert wheel.name.startswith(f"{DISTRIBUTION}_{name}-")
    assert build_wheel.missing_files(wheel, project) == []
