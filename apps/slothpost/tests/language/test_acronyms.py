"""Acronyms in titles."""

from __future__ import annotations

import pytest

from slothpost.language.acronyms import in_words, unexplained, vocabulary_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Add SSO for teams", "Add single sign-on for teams"),
        ("Better a11y", "Better accessibility"),
        ("Search by OCR", "Search by text recognition"),
        ("Add notifs", "Add notifications"),
        ("Add GAUTH", "Add GAUTH"),
    ],
)
def test_what_developers_shorten_is_written_out(text: str, said: str) -> None:
    assert in_words(text) == said


def test_acronyms_that_everybody_knows_need_no_explanation_and_others_do() -> None:
    assert unexplained("Export as PDF, CSV or GPX from the USA on iOS") == ()
    assert unexplained("Support GTFS feeds and RFCs") == ("GTFS", "RFCs")


def test_readers_know_the_words_of_the_product() -> None:
    assert unexplained("Support GTFS feeds", vocabulary_of("Busline", "Departures from any GTFS feed")) == ()
