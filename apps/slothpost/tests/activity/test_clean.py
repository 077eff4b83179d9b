"""Titles and notes without what only developers read."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slothpost.activity.clean import MAX_BODY, MAX_TITLE, capitalized, clean_body, clean_title

TITLES = """
Fix crash when opening empty lists (#123) -> Fix crash when opening empty lists
add dark mode -> Add dark mode
Add `userName` to profile page -> Add user name to profile page
Fix NullPointerException in PlantListView -> Fix null pointer exception in plant list view
Update src/app/main.py to handle utf-8 -> Update to handle utf-8
Handle user_id in get_user() -> Handle user id
Use --dry-run flag -> Use dry-run flag
Fix PLNT-231: reminder fires twice -> Fix reminder fires twice
Close #12: Add sharing -> Add sharing
Fixes #44 in the editor -> In the editor
✨ Add widgets -> Add widgets
:bug: Fix sorting -> Fix sorting
Fix login for @octocat -> Fix login
Add maps by @octocat in https://github.com/a/b/pull/1 -> Add maps
Fix a1b2c3d4e5 regression -> Fix regression
Add dark mode [skip ci] -> Add dark mode
Add Next.js support -> Add Next support
Add GPT-4 and UTF-8 support -> Add GPT-4 and UTF-8 support
Show 24/7 label -> Show 24/7 label
Add CSV/PDF export -> Add CSV/PDF export
export to pdf on ios -> Export to PDF on iOS
iPad layout -> iPad layout
FIX THE LAYOUT -> Fix the layout
Share a garden with the people you live with -> Share a garden with the people you live with
fix deadbeef decade facade -> Fix deadbeef decade facade
Read https://evil.example now -> Read now
"""


@pytest.mark.parametrize(("title", "clean"), [tuple(line.split(" -> ")) for line in TITLES.strip().splitlines()])
def test_titles_keep_what_people_read(title: str, clean: str) -> None:
    assert clean_title(title) == clean


@pytest.mark.parametrize(
    "title", ["", "   ", "#12", "https://example.com", "@octocat", "src/app/main.py", "a1b2c3d4e5f6", "\x00\x01", "🎉🎉"]
)
def test_titles_of_which_nothing_is_left_are_empty(title: str) -> None:
    assert clean_title(title) == ""


def test_only_the_first_line_of_a_title_counts_and_it_is_cut_at_a_word() -> None:
    assert clean_title("Add maps\nAdd more") == "Add maps"
    long = clean_title("word " * 100)
    assert len(long) <= MAX_TITLE
    assert long.endswith("word")


def test_hidden_names_go_with_the_words_that_lead_to_them() -> None:
    hidden = re.compile(r"tideline-core")
    assert clean_title("Read the forecast in tideline-core", hidden) == "Read the forecast"


def test_titles_start_with_a_capital_unless_a_name_does_not() -> None:
    assert [capitalized(each) for each in ("dark mode", "iPad layout", "ios widgets", "éclair")] == [
        "Dark mode",
        "iPad layout",
        "ios widgets",
        "Éclair",
    ]


NOTES = """\
<!-- please fill in -->
## What's Changed
* Add **dark mode** by @octocat in https://github.com/acme/plant/pull/3
* [Widgets](https://example.com/widgets) for the lock screen (#4)
- [ ] tested on a phone

### Fixed
1. Crash on startup

```python
print("secret")
```
Until now the list was empty.

### Contributors
- @octocat

**Full Changelog**: https://github.com/acme/plant/compare/v1...v2
Signed-off-by: Somebody <somebody@example.com>
"""


def test_notes_keep_their_points_their_headings_and_their_sentences() -> None:
    assert clean_body(NOTES).splitlines() == [
        "- Add dark mode",
        "- Widgets for the lock screen",
        "",
        "Fixed:",
        "- Crash on startup",
        "",
        "Until now the list was empty.",
    ]


def test_notes_are_cut_at_a_word() -> None:
    assert len(clean_body("word " * 1_000)) <= MAX_BODY


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=400))
def test_whatever_strangers_write_has_no_control_characters_links_or_accounts(text: str) -> None:
    for clean in (clean_title(text), clean_body(text)):
        assert not re.search(r"https?://\S|[\x00-\x08\x0b-\x1f\x7f\ufeff]", clean)
        assert len(clean) <= MAX_BODY


@pytest.mark.parametrize(
    "part", ["a ", "in the ", "@a/", "a_", "[x](", "**", "#1 ", "a/b", "http://", "<", "A-1", ":a", "aA", "in \x00", "- "]
)
def test_texts_that_are_made_to_be_slow_are_not(part: str) -> None:
    began = time.process_time()
    clean_title(part * (2_000 // len(part)))
    clean_body(part * (2_000 // len(part)))
    assert time.process_time() - began < 0.5
