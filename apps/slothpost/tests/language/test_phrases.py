"""Titles of changes as parts of sentences."""

from __future__ import annotations

import pytest

from slothpost.language.phrases import phrase_of

DID = [
    ("Add dark mode", "added dark mode"),
    ("Adds share button to plant page", "added a share button to the plant page"),
    ("Implement approval workflow", "added an approval workflow"),
    ("Launch public beta", "launched a public beta"),
    ("Introduce teams", "introduced teams"),
    ("Dark mode", "added dark mode"),
    ("API for reading lists", "added an API for reading lists"),
    ("Add RSS feed and share sheet", "added an RSS feed and a share sheet"),
    ("Add keyboard shortcut for new note", "added a keyboard shortcut for a new note"),
    ("Redesign onboarding", "redesigned the onboarding"),
    ("Improve search results", "improved search results"),
    ("Improved contrast in dark mode", "improved the contrast in dark mode"),
    ("Speed up photo upload", "sped up the photo upload"),
    ("Cut load time of dashboard in half", "cut the load time of the dashboard in half"),
    ("Make it easier to find archived plants", "made it easier to find archived plants"),
    ("Translate app to German", "translated the app to German"),
    ("Support Apple Health", "added support for Apple Health"),
    ("Remove ads", "removed ads"),
    ("Add dark mode and fix crash on startup", "added dark mode and fixed a crash on startup"),
    ("Add ability to pin note", "added a way to pin a note"),
    ("Add option to hide sidebar", "added an option to hide the sidebar"),
    ("Allow customers to pay by card", "added a way for customers to pay by card"),
    ("Import from Goodreads", "added a way to import from Goodreads"),
]

CAN = [
    ("Export trip as GPX file", "export a trip as a GPX file"),
    ("Users can now share lists", "share lists"),
    ("Let users share a garden with the people they live with", "share a garden with the people you live with"),
    ("Allow exporting invoices as CSV", "export invoices as CSV"),
    ("Support importing GPX tracks", "import GPX tracks"),
    ("Make it possible to undo a deleted trip", "undo a deleted trip"),
    ("Drag and drop photos to reorder", "drag and drop photos to reorder"),
    ("Log workouts from the watch", "log workouts from the watch"),
]

DOES = [
    ("Show watering history on plant page", "now shows watering history on the plant page"),
    ("Remember last filter", "now remembers the last filter"),
    ("Warn before deleting list", "now warns before deleting a list"),
    ("Send weekly summary by email", "now sends a weekly summary by email"),
    ("Prevent duplicate reminders after time zone change", "now prevents duplicate reminders after a time zone change"),
    ("Don't lose drafts when offline", "no longer loses drafts when offline"),
    ("Stop sending two emails", "no longer sends two emails"),
    ("No longer silently drop errors", "no longer silently drops errors"),
    ("Never call twice for the same outage", "never calls twice for the same outage"),
    ("Automatically retry uploads", "now automatically retries uploads"),
    ("Keep order of waypoints", "now keeps the order of waypoints"),
]

SAYS = [
    ("Lists load twice as fast now", "lists load twice as fast now"),
    ("Plants keep their order", "plants keep their order"),
    ("Shopping list sorts itself by aisle", "the shopping list sorts itself by aisle"),
    ("Tags can be renamed", "tags can be renamed"),
    ("Users receive an email when a domain expires", "users receive an email when a domain expires"),
    ("The map is faster", "the map is faster"),
]

BUGS = [
    ("Fix crash when opening empty lists", "a crash when opening empty lists"),
    ("Fixed memory leak in map view", "a memory leak in the map view"),
    ("Fix reminder fires twice", "a bug where the reminder fires twice"),
    ("Fix the list was empty after login", "a bug where the list was empty after login"),
    ("Fix dates show wrong year", "a bug where dates show the wrong year"),
    ("Fix wrong total on invoices", "a wrong total on invoices"),
    ("Fix missing icons", "missing icons"),
    ("Fix widget not updating after midnight", "the widget not updating after midnight"),
    ("Fix reminders firing twice", "reminders firing twice"),
    ("Fix issue with login on Safari", "an issue with login on Safari"),
]

FIXED = [
    ("Fix share sheet on iPad", "the share sheet on iPad"),
    ("Fix timezone handling in reminders", "the timezone handling in reminders"),
    ("Fix fractions in ingredient amounts", "fractions in ingredient amounts"),
    ("Hotfix login", "the login"),
]


@pytest.mark.parametrize(("title", "did"), DID)
def test_titles_say_what_their_author_did(title: str, did: str) -> None:
    assert phrase_of(title).did == did


@pytest.mark.parametrize(("title", "can"), CAN)
def test_titles_say_what_users_can_do(title: str, can: str) -> None:
    assert phrase_of(title).can == can


@pytest.mark.parametrize(("title", "does"), DOES)
def test_titles_say_what_the_product_does(title: str, does: str) -> None:
    assert phrase_of(title).does == does


@pytest.mark.parametrize(("title", "says"), SAYS)
def test_titles_may_be_sentences_of_their_own(title: str, says: str) -> None:
    assert phrase_of(title).says == says


@pytest.mark.parametrize(("title", "bug"), BUGS)
def test_titles_of_fixes_name_the_fault(title: str, bug: str) -> None:
    assert phrase_of(title, is_fix=True).bug == bug


@pytest.mark.parametrize(("title", "fixed"), FIXED)
def test_what_was_fixed_is_no_fault_if_the_title_does_not_name_one(title: str, fixed: str) -> None:
    phrase = phrase_of(title, is_fix=True)
    assert (phrase.fixed, phrase.bug) == (fixed, None)


@pytest.mark.parametrize(
    "title", ["Order prints from the gallery", "Sort plants by name", "Transpose songs with a pedal", "Loosen the cap"]
)
def test_nobody_claims_to_know_who_does_it_where_a_title_leaves_it_open(title: str) -> None:
    phrase = phrase_of(title, is_fix=title.startswith("Loosen"))
    assert phrase.item == title[0].lower() + title[1:]
    assert (phrase.did, phrase.can, phrase.does, phrase.noun) == (None, None, None, None)


@pytest.mark.parametrize(
    "title", ["Copy button for code blocks", "Order history", "Export options", "Saved searches", "Focus timer"]
)
def test_words_that_may_be_verbs_are_nouns_before_a_noun(title: str) -> None:
    did = phrase_of(title).did
    assert did is not None
    assert did.startswith("added ")


@pytest.mark.parametrize(
    ("title", "item"),
    [
        ("iPad layout", "iPad layout"),
        ("Face ID lock", "Face ID lock"),
        ("Stripe checkout", "Stripe checkout"),
        ("Dark Mode Support For All Screens", "dark mode support for all screens"),
        ("CSV import — fills 24 columns", "CSV import"),
        ("Live Activities for timers", "Live Activities for timers"),
    ],
)
def test_names_keep_their_capitals_and_other_words_lose_them(title: str, item: str) -> None:
    assert phrase_of(title).item == item


@pytest.mark.parametrize("title", ["", "x", "Add", "Fix", "and", "Don't", "…", "Allow users to", "植物の写真", "🎉", "a " * 500])
def test_every_title_has_an_item_whatever_it_is(title: str) -> None:
    assert isinstance(phrase_of(title, is_fix=True).item, str)
    assert isinstance(phrase_of(title).item, str)
