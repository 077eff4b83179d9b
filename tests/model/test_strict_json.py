"""JSON as strictly as it is meant."""

from __future__ import annotations

import pytest

from tickler.errors import InvalidInput
from tickler.model.strict_json import read_json


def test_a_name_that_comes_twice_is_found_among_a_hundred_thousand_by_one_look_at_each() -> None:
    names = [f'"n{number}":1' for number in range(100_000)]
    with pytest.raises(InvalidInput, match="'n99999' occurs twice"):
        read_json(f"{{{','.join([*names, names[-1]])}}}".encode())


def test_of_several_names_the_first_that_comes_again_is_named() -> None:
    with pytest.raises(InvalidInput, match="'b' occurs twice"):
        read_json(b'{"a": 1, "b": 2, "b": 3, "a": 4}')
