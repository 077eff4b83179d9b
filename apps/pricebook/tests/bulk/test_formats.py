"""Prices in CSV and NDJSON: what people and spreadsheets write, what hostile files do, and that an export is read as it was."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from bulk.test_lines import cut
from hypothesis import given
from hypothesis import strategies as st

from pricebook.bulk.csv_reader import CsvReader
from pricebook.bulk.csv_writer import CsvWriter
from pricebook.bulk.formulas import guarded, unguarded
from pricebook.bulk.limits import BulkLimits
from pricebook.bulk.lines import LineSplitter
from pricebook.bulk.ndjson import NdjsonReader, NdjsonWriter
from pricebook.bulk.price_file import LineReader
from pricebook.bulk.price_line import PriceLine, Refusal
from pricebook.editions.pages import PriceNode
from pricebook.errors import InvalidField
from pricebook.model import PriceKey
from pricebook.money import Money

LIMITS = BulkLimits(line=2_000)
T = datetime(2026, 3, 1, tzinfo=UTC)
HEADER = "store,product,amount,currency\n"


def read(content: bytes | str, format: str = "csv", currency: str = "", at: set[int] | None = None) -> list[PriceLine | Refusal]:
    reader: LineReader = CsvReader(currency, LIMITS) if format == "csv" else NdjsonReader(currency, LIMITS)
    splitter = LineSplitter(LIMITS.line)
    data = content.encode() if isinstance(content, str) else content
    found: list[PriceLine | Refusal] = []
    for piece in cut(data, at or set()):
        for line in splitter.feed(piece):
            found += reader.read(line)
    for line in splitter.end():
        found += reader.read(line)
    reader.end()
    return found


def prices(found: Sequence[PriceLine | Refusal]) -> dict[str, str]:
    """Return what good lines say, as {"1/ALL/Base/P1": "19.99 EUR"}."""
    assert all(isinstance(each, PriceLine) for each in found), found
    lines = [each for each in found if isinstance(each, PriceLine)]
    return {"/".join(filter(None, _fields(each.key))): str(each.amount) for each in lines}


def _fields(key: PriceKey) -> tuple[str, ...]:
    return (key.store, key.channel, key.type, key.product, key.combination or "")


def refusals(found: Sequence[PriceLine | Refusal]) -> dict[int, str]:
    return {each.line: each.reason for each in found if isinstance(each, Refusal)}


GOOD = {"1/ALL/Base/P1": "19.99 EUR", "1/WEB/Base/P2": "5.00 EUR"}


@pytest.mark.parametrize(
    "content",
    [
        "store,channel,product,amount,currency\n1,ALL,P1,19.99,EUR\n1,WEB,P2,5,EUR\n",
        "store,channel,product,amount,currency\r\n1,,P1,19.99,EUR\n1,WEB,P2,5.0,EUR",
        "\ufeffstore;channel;product;amount;currency\r\n1;;P1;19,99;EUR\r\n1;WEB;P2;5,00;EUR\r\n",
        "sep=;\r\nCurrency;Amount;Product;Store;Channel\r\nEUR;19.99;P1;1;\r\nEUR;5;P2;1;WEB\r\n",
        ' Store , channel,product,amount,currency\n"1","","P1","19.99",EUR\n\n,,,,\n1,WEB,"P2",5,EUR\n',
    ],
    ids=["commas", "mixed line ends", "semicolons and decimal commas", "a line for Excel", "quotes and empty lines"],
)
def test_csv_is_read_as_spreadsheets_write_it(content: str) -> None:
    assert prices(read(content)) == GOOD


def test_ndjson_is_read_with_amounts_as_texts_or_numbers() -> None:
    content = (
        '{"store": "1", "product": "P1", "amount": "19.99", "currency": "EUR"}\r\n\n   \n'
        '{"product":"P2","store":"1","channel":"WEB","type":"Base","amount":5,"currency":"EUR","combination":null}'
    )
    assert prices(read(content, "ndjson")) == GOOD
    assert prices(read('{"store":"1","type":"Swap","product":"C1","combination":"D","amount":0.1}', "ndjson", "EUR")) == {
        "1/ALL/Swap/C1/D": "0.10 EUR"
    }


def test_an_empty_amount_keeps_the_price_and_a_word_deletes_it() -> None:
    found = read("store,product,amount,currency,delete\n1,P1,,EUR,\n1,P2,,,yes\n1,P3,1,EUR,no\n1,P4,1,EUR,x\n1,P5,,,perhaps\n")
    lines = {each.key.product: (each.keeps, each.deletes) for each in found if isinstance(each, PriceLine)}
    assert lines == {"P1": (True, False), "P2": (False, True), "P3": (False, False)}
    assert refusals(found) == {
        5: "amount: cannot go with delete: leave one of them empty",
        6: "delete: 'perhaps' is neither yes nor no: write yes to delete the price, or leave it empty",
    }
    ndjson = read('{"store":"1","product":"P1"}\n{"store":"1","product":"P2","delete":true}', "ndjson")
    assert [(each.keeps, each.deletes) for each in ndjson if isinstance(each, PriceLine)] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,P1,19.999,EUR", "amount: '19.999' has more digits after the point than EUR: round it"),
        ("1,P1,1e5,EUR", "amount: '1e5' is not an amount"),
        ("1,P1,NaN,EUR", "amount: 'NaN' is not an amount"),
        ("1,P1,٣,EUR", "is not an amount"),
        ("1,P1,-1,EUR", "amount: is -1.00 EUR: a price is not negative"),
        ("1,P1,99999999999999999,EUR", "is not an amount"),
        ("1,P1,5,", "currency: is missing: write it in each line, or choose one for the whole import"),
        ("1,P1,5,eur", "'eur' is not a currency code"),
        (",P1,5,EUR", "store: is empty: name one"),
        ("1,,5,EUR", "product: is empty: name one"),
        ("1,P1,5", "has 3 fields, and the first line has 4: correct one of them"),
        ("1,P1,5,EUR,", "has 5 fields"),
        ("1,P\0,5,EUR", "has a NUL character"),
        (f"1,{'P' * 1_000},5,EUR", "longer than 900 bytes"),
        (f"1,{'P' * 3_000},5,EUR", "is longer than 2,000 bytes"),
        ('1,"P1"x,5,EUR', "cannot be read"),
        ("1,P\r1,5,EUR", "cannot be read"),
    ],
    ids=lambda value: value[:30],
)
def test_a_bad_line_of_csv_is_refused_and_the_next_one_is_read(line: str, says: str) -> None:
    found = read(f"{HEADER}{line}\n1,P9,5,EUR\n")
    assert says in refusals(found)[2]
    assert prices(found[1:]) == {"1/ALL/Base/P9": "5.00 EUR"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "cannot be read: input data was truncated: correct the line"),
        (b"[1]", "expected `object`, got `array`"),
        (b'{"store":"1"}', "missing required field `product`"),
        (b'{"store":1,"product":"P1"}', "expected `str`, got `int`"),
        (b'{"store":"1","product":"P1","price":5}', "unknown field `price`"),
        (b'{"store":"1","product":"P1","amount":true,"currency":"EUR"}', "'true' is not an amount"),
        (b'{"store":"1","product":"P1","amount":1e2,"currency":"EUR"}', "'1e2' is not an amount"),
        (b'{"store":"1","product":"P1","amount":' + b"[" * 1_900, "cannot be read"),
        (b'{"store":"1","product":"\xff"}', "it is not UTF-8: save the file as UTF-8"),
        (b'{"store":"1","product":"P1","amount":"\xff"}', "it is not UTF-8: save the file as UTF-8"),
        (b'{"store":"1","product":"\\ud800"}', "cannot be read"),
        (b'{"store":"1","product":"P\\u0000"}', "has a NUL character"),
        (b'{"store":"1","product":"P1","type":"Sale"}', "'Sale' is unknown: use one of Base, Swap"),
        (b'{"store":"1","product":"P1","type":"Swap"}', "combination: is missing"),
        (b'{"store":"1","product":"P1","combination":"D"}', "is not for prices of type Base"),
        (b'{"store":"' + b"1" * 3_000, "is longer than 2,000 bytes: write one price in each line"),
        (b"\0\0\0\0", "cannot be read"),
        (b"1,P1,5,EUR", "cannot be read"),
    ],
    ids=lambda value: str(value[:40]),
)
def test_a_bad_line_of_ndjson_is_refused_and_the_next_one_is_read(line: bytes, says: str) -> None:
    found = read(line + b'\n{"store":"1","product":"P9"}', "ndjson")
    assert says in refusals(found)[1]
    assert len(found) == 2
    assert isinstance(found[1], PriceLine)


def test_a_line_nested_deeper_than_the_interpreter_goes_is_refused() -> None:
    reader = NdjsonReader("", BulkLimits(line=200_000))
    splitter = LineSplitter(200_000)
    (line,) = splitter.feed(b'{"store":"1","product":"P1","amount":' + b"[" * 100_000 + b"\n")
    (found,) = reader.read(line)
    assert isinstance(found, Refusal)
    assert "nested too deeply" in found.reason


def test_latin_1_is_refused_where_it_differs_from_utf_8() -> None:
    found = read(f"{HEADER}1,Käse,5,EUR\n1,P9,5,EUR\n".encode("latin-1"))
    assert refusals(found) == {2: "is not UTF-8: save the file as CSV UTF-8"}
    with pytest.raises(InvalidField, match="file: is not UTF-8: save it as CSV UTF-8"):
        read("store,prödukt\n".encode("latin-1"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("\n \r\n", "is empty"),
        ("store,product\n", "the column 'amount' is missing"),
        ("store,amount\n", "the column 'product' is missing"),
        ("store,product,price\n", "the column 'price' is unknown: use store, channel"),
        ("store,product,amount,STORE\n", "the column 'store' is there twice"),
        (",".join(["store"] * 100) + "\n", "has 100 columns, and may have 64"),
        ("store,product,amount\r1,P1,5\r", "its lines end as on old Macs"),
        ("store\tproduct\tamount\n", "the column 'store\\tproduct\\tamount' is unknown"),
        (f'{HEADER}1,"P1,5,EUR\n' + "1,P2,5,EUR\n" * 1_000, "a quote that is opened in line 2 is not closed"),
        (f'{HEADER}1,"P1,5,EUR\n1,P2,5,EUR\n', "a quote that is opened in line 2 is not closed"),
    ],
    ids=lambda value: value[:30],
)
def test_a_file_that_is_no_csv_of_prices_is_refused_as_a_whole(content: str, says: str) -> None:
    with pytest.raises(InvalidField) as refused:
        read(content)
    assert says in str(refused.value)


@pytest.mark.parametrize("format", ["csv", "ndjson"])
def test_a_line_of_10_mb_is_refused_without_being_held(format: str) -> None:
    header = HEADER if format == "csv" else ""
    found = read(f"{header}{'x' * 10_000_000}\n", format)
    assert ["is longer than 2,000 bytes" in reason for reason in refusals(found).values()] == [True]
    with pytest.raises(InvalidField, match="its first line is longer than 2,000 bytes"):
        read("x" * 10_000_000)


def test_a_quote_within_a_field_is_part_of_its_name() -> None:
    found = read(f'{HEADER}1,5" pipe,5,EUR\n1,P2,5,EUR\n1,6" pipe,5,EUR\n')
    assert list(prices(found)) == ['1/ALL/Base/5" pipe', "1/ALL/Base/P2", '1/ALL/Base/6" pipe']
    assert [each.line for each in found] == [2, 3, 4]


def test_a_record_of_several_lines_is_counted_in_lines_and_says_what_it_has_swallowed() -> None:
    found = read(f'{HEADER}1,"a\r\nb\nc",5,EUR\n1,P2,5,EUR\n1,"x\ny"z,5,EUR\n1,P3,5,EUR\n')
    assert [each.line for each in found] == [2, 5, 6, 8]
    assert isinstance(found[0], PriceLine)
    assert found[0].key.product == "a\r\nb\nc"
    assert "nor what follows up to line 7" in refusals(found)[6]


@pytest.mark.parametrize("text", ["=cmd|'/C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''x", "'"])
def test_no_spreadsheet_runs_a_name_and_it_is_read_as_it_was(text: str) -> None:
    written = guarded(text)
    assert not written.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))
    assert unguarded(written) == text


@given(st.text())
def test_guarding_a_text_and_reading_it_again_gives_the_text(text: str) -> None:
    assert unguarded(guarded(text)) == text


NAMES = st.text(
    st.one_of(st.sampled_from("=+-@',;\"\t\r\n #%/é\u2028\x1c\x85"), st.characters(codec="utf-8", exclude_characters="\0")),
    min_size=1,
    max_size=12,
)
MONEY = st.builds(Money, st.integers(0, 10**12), st.sampled_from(["EUR", "JPY", "KWD", "CLF"]))


@st.composite
def nodes(draw: st.DrawFn) -> PriceNode:
    type = draw(st.sampled_from(["Base", "Swap"]))
    combination = draw(NAMES) if type == "Swap" else None
    return PriceNode(draw(NAMES), draw(NAMES), type, draw(NAMES), draw(MONEY), T, combination=combination)


def key_of(node: PriceNode) -> PriceKey:
    return PriceKey(node.store, node.channel, node.type, node.product, node.combination)


@given(st.lists(nodes(), max_size=6), st.sets(st.integers(0, 2_000), max_size=6), st.sampled_from([",", ";", "ndjson"]))
def test_an_export_is_read_as_what_was_exported_wherever_it_is_cut(found: list[PriceNode], at: set[int], kind: str) -> None:
    writer = NdjsonWriter() if kind == "ndjson" else CsvWriter(kind)
    lines = read(writer.begin() + writer.lines(found), "ndjson" if kind == "ndjson" else "csv", at=at)
    assert all(isinstance(each, PriceLine) for each in lines), lines
    again = [(each.key, each.amount) for each in lines if isinstance(each, PriceLine)]
    assert again == [(key_of(node), node.amount) for node in found]


def test_an_exported_csv_is_one_that_other_programs_read() -> None:
    writer = CsvWriter(";")
    node = PriceNode("1", "ALL", "Base", '=1;"x"', Money(1999, "EUR"), T)
    text = (writer.begin() + writer.lines([node])).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    assert rows == [
        {
            "store": "1",
            "channel": "ALL",
            "type": "Base",
            "product": '\'=1;"x"',
            "combination": "",
            "amount": "19.99",
            "currency": "EUR",
        }
    ]


def test_another_delimiter_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"delimiter: '\|' is unknown: use , or ;"):
        CsvWriter("|")
