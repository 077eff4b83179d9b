"""What the advisor says about the indexes of a table, and that it is silent about good ones."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from table.goods import goods
from table.guide_tables import guide_classes

from tickler.table import MISSING, Attr, Entity, Index, Key, Missing, Table, attr
from tickler.table.measurement import Fill, Measurement, Partition
from tickler.table.schema.finding import Finding
from tickler.table.schema.hot_partition import UNITS_A_SECOND, shards_for

GUIDE = guide_classes()
SHOP, SITE = GUIDE["shop"], GUIDE["site"]


def measured(pending: int, orders: int, *, deleted: int = 0, exact: bool = True, size: int = 300) -> Measurement:
    """A measurement of the guide's shop."""
    indexes = {"gsi1": Fill({"Order": pending}, Partition("PENDING_ORDER", pending), exact), "gsi2": Fill({"Order": deleted})}
    return Measurement(Fill({"Customer": 10, "Order": orders}, exact=exact), indexes, {"Order": size})


def of(check: str, findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


@pytest.mark.parametrize("table", [SHOP, SITE, GUIDE["desk"]], ids=lambda table: table.name)
def test_the_guides_tables_are_fine_by_definition(table: Table) -> None:
    advice = table.advise()
    assert advice.findings == ()
    assert advice.is_fine


async def test_the_guides_tables_are_fine_with_their_items() -> None:
    noon = datetime.fromisoformat("2026-03-02T12:00:00+00:00")
    order = {"customer": "c1", "address": GUIDE["Address"](city="Bonn")}
    async with SHOP.connect("memory://") as db:
        await db.put_many([GUIDE["Customer"](id=f"c{n}", name="Ada") for n in range(1_000)])
        await db.put_many(
            [
                GUIDE["Order"](**order, id=f"o{n}", status="pending" if n < 5 else "shipped", placed_at=noon + timedelta(hours=n))
                for n in range(200)
            ]
        )
        assert SHOP.advise(await db.measure()).findings == ()
    async with SITE.connect("memory://") as db:
        await db.put_many([GUIDE["Comment"](id=f"c{n}", reports=n) for n in range(6)])
        await db.put_many([GUIDE["Article"](id="a1"), GUIDE["Article"](id="a2", featured=True)])
        await db.put_many([GUIDE["Product"](id="p1"), GUIDE["Product"](id="p2", promo_code="SPRING")])
        assert SITE.advise(await db.measure()).findings == ()


class TestNotSparse:
    def test_an_index_with_more_than_thirty_percent_of_the_items_is_not_sparse(self) -> None:
        advice = SHOP.advise(measured(70, 200))
        (finding,) = advice.findings
        assert (finding.check, finding.severity, finding.about) == ("not sparse", "warning", "Order.pending")
        assert finding.figure == "70 of 200 Order items, 35%"
        assert not advice.is_fine

    def test_at_thirty_percent_it_still_is(self) -> None:
        assert SHOP.advise(measured(60, 200)).findings == ()

    def test_a_handful_of_items_says_nothing(self) -> None:
        assert SHOP.advise(measured(90, 99)).findings == ()

    def test_an_estimate_is_said_to_be_one(self) -> None:
        (finding,) = SHOP.advise(measured(70, 200, exact=False)).findings
        assert finding.figure == "about 70 of 200 Order items, 35%"

    def test_only_the_items_of_the_same_entity_count(self) -> None:
        many_customers = Measurement(
            Fill({"Customer": 1_000_000, "Order": 200}), {"gsi1": Fill({"Order": 150}), "gsi2": Fill({})}, {}
        )
        (finding,) = SHOP.advise(many_customers).findings
        assert finding.figure == "150 of 200 Order items, 75%"


class TestNeverAbsent:
    def test_a_key_without_condition_and_optional_attribute_is_never_absent(self) -> None:
        found = of("never absent", goods.advise().findings)
        assert [(finding.about, finding.severity) for finding in found] == [
            ("Item.by_status", "info"),
            ("Counter.by_n", "info"),
        ]
        assert goods.advise().is_fine, "it may be meant like this"

    def test_a_condition_that_always_holds_is_none(self) -> None:
        table = Table("things")

        class Thing(Entity, table=table):
            id: Attr[str] = attr()
            size: Attr[int] = attr(default=0)
            key = Key("THING" / id, "X")
            any_size = Index("gsi1", "SIZE" / size, id, when=(size == 0) | (size != 0))

        assert [finding.about for finding in table.advise().findings] == ["Thing.any_size"]

    def test_it_is_not_said_again_that_it_is_not_sparse(self) -> None:
        full = Fill({"Counter": 500, "Item": 500})
        indexes = {"gsi1": full, "gsi2": Fill({}), "gsi3": Fill({})}
        findings = goods.advise(Measurement(full, indexes, {})).findings
        assert of("not sparse", findings) == []
        assert of("never absent", findings)[0].figure == "500 of 500 Item items, 100%"


class TestAbsence:
    def table(self) -> Table:
        table = Table("things")

        class Thing(Entity, table=table):
            id: Attr[str] = attr()
            done_at: Attr[datetime | Missing] = attr(default=MISSING)
            size: Attr[int] = attr(default=0)
            key = Key("THING" / id, "X")
            live = Index("gsi1", "LIVE", id, when=done_at.missing())
            large = Index("gsi2", "LARGE", id, when=done_at.missing() & (size > 100))

        return table

    def test_an_index_of_what_is_missing_lists_the_wrong_side(self) -> None:
        (finding,) = self.table().advise().findings
        assert (finding.check, finding.severity, finding.about) == ("absence", "info", "Thing.live")
        assert "lack done_at" in finding.says

    def test_it_is_fine_where_few_items_lack_it(self) -> None:
        few = Measurement(Fill({"Thing": 1_000}), {"gsi1": Fill({"Thing": 10}), "gsi2": Fill({})}, {})
        assert self.table().advise(few).findings == ()

    def test_it_is_a_warning_where_most_items_lack_it(self) -> None:
        most = Measurement(Fill({"Thing": 1_000}), {"gsi1": Fill({"Thing": 990}), "gsi2": Fill({})}, {})
        (finding,) = self.table().advise(most).findings
        assert (finding.check, finding.severity, finding.figure) == ("absence", "warning", "990 of 1,000 Thing items, 99%")


class TestCouldShare:
    def test_indexes_of_different_entities_could_be_one(self) -> None:
        table = Table("things")

        class One(Entity, table=table):
            id: Attr[str] = attr()
            open: Attr[bool] = attr(default=False)
            key = Key("ONE" / id, "X")
            opened = Index("gsi1", "OPEN_ONE", id, when=open == True)  # noqa: E712

        class Two(Entity, table=table):
            id: Attr[str] = attr()
            open: Attr[bool] = attr(default=False)
            key = Key("TWO" / id, "X")
            opened = Index("gsi2", "OPEN_TWO", id, when=open == True)  # noqa: E712

        class Three(Entity, table=table):
            id: Attr[str] = attr()
            code: Attr[str | Missing] = attr(default=MISSING)
            key = Key("THREE" / id, "X")
            coded = Index("gsi3", "CODE" / code, id)

        (finding,) = table.advise().findings
        assert (finding.check, finding.severity, finding.about) == ("could share", "info", "gsi1, gsi2 and gsi3")
        assert finding.figure == "3 indexes where 1 is enough"

    def test_indexes_of_one_entity_could_be_one_only_if_their_conditions_exclude_each_other(self) -> None:
        def advised(second: Any) -> list[str]:
            table = Table("things")

            class Thing(Entity, table=table):
                id: Attr[str] = attr()
                size: Attr[int] = attr(default=0)
                key = Key("THING" / id, "X")
                large = Index("gsi1", "LARGE", id, when=size > 100)
                other = Index("gsi2", "OTHER", id, when=second(size))

            return [finding.about for finding in table.advise().findings]

        assert advised(lambda size: size < 10) == ["gsi1 and gsi2"]
        assert advised(lambda size: size < 1_000) == []

    def test_indexes_whose_partitions_would_mix_stay_apart(self) -> None:
        table = Table("things")

        class One(Entity, table=table):
            id: Attr[str] = attr()
            code: Attr[str | Missing] = attr(default=MISSING)
            key = Key("ONE" / id, "X")
            coded = Index("gsi1", "CODE" / code, id)

        class Two(Entity, table=table):
            id: Attr[str] = attr()
            code: Attr[str | Missing] = attr(default=MISSING)
            key = Key("TWO" / id, "X")
            coded = Index("gsi2", "CODE" / code, id)

        assert table.advise().findings == ()


class TestHotPartition:
    def test_a_constant_partition_of_a_sparse_index_is_fine_until_a_rate_is_too_high(self) -> None:
        assert SHOP.advise(writes_per_second=1_000).findings == ()
        (finding,) = SHOP.advise(writes_per_second=1_001).findings
        assert (finding.check, finding.severity, finding.about) == ("hot partition", "warning", "Order.pending")
        assert finding.figure == "1,001 writes a second of 1 unit, and a partition takes 1,000"
        assert "split it into 2 shards" in finding.remedy

    def test_large_items_need_more_shards(self) -> None:
        (finding,) = SHOP.advise(measured(10, 200, size=1_800), writes_per_second=2_500).findings
        assert finding.figure == "2,500 writes a second of 2 units, and a partition takes 500"
        assert "split it into 5 shards (2,500 × 2 / 1,000)" in finding.remedy
        assert 'pending = Index("gsi1", "PENDING_ORDER" / shard, placed_at / id, when=status == "pending")' in finding.remedy

    def test_a_constant_partition_of_all_items_is_remarked_without_a_rate(self) -> None:
        found = of("hot partition", goods.advise().findings)
        assert [(finding.about, finding.severity) for finding in found] == [("Counter.key", "info"), ("Counter.by_n", "info")]
        assert found[0].figure == "a partition takes 1,000 writes a second of 1 unit"

    def test_a_partition_with_most_of_the_items_is_hot(self) -> None:
        indexes = {"gsi1": Fill({}), "gsi2": Fill({})}
        table = Fill({"Customer": 100, "Order": 4_900}, Partition("CUSTOMER#c7", 4_000))
        (finding,) = SHOP.advise(Measurement(table, indexes, {"Order": 500})).findings
        assert (finding.check, finding.severity, finding.about) == ("hot partition", "warning", "Order.key")
        assert finding.says == "the partition 'CUSTOMER#c7' has 4,000 of the 5,000 items of the table, 80%"
        assert 'key = Key("CUSTOMER" / customer / shard, "ORDER" / placed_at / id)' in finding.remedy

    def test_a_large_partition_is_fine_at_a_low_rate(self) -> None:
        table = Fill({"Customer": 100, "Order": 4_900}, Partition("CUSTOMER#c7", 4_000))
        found = Measurement(table, {"gsi1": Fill({}), "gsi2": Fill({})}, {"Order": 500})
        assert SHOP.advise(found, writes_per_second=20).findings == ()

    def test_a_single_item_has_no_partition_to_split(self) -> None:
        table = Table("things")

        class Settings(Entity, table=table):
            colour: Attr[str] = attr(default="red")
            key = Key("SETTINGS", "SETTINGS")

        assert table.advise(writes_per_second=5_000).findings == ()

    def test_the_remedy_can_be_pasted(self) -> None:
        (finding,) = SHOP.advise(writes_per_second=4_000).findings
        declared, hashed, index = finding.remedy.split("`")[1::2]
        names = {**GUIDE, "table": Table("sharded")}
        source = f"""
class Sharded(Entity, table=table):
    id: Attr[str] = attr()
    status: Attr[str] = attr()
    placed_at: Attr[datetime] = attr()
    {declared}
    key = Key("SHARDED" / id, "X")
    {index}
"""
        exec(source, names)
        assert names["table"].describe().keys_in("gsi1")[0].partition_text == "PENDING_ORDER#{shard}"
        exec("import zlib; id = 'o1'", names)
        assert eval(hashed, names) in range(4)
        assert names["table"].advise(writes_per_second=4_000).findings == ()

    @pytest.mark.parametrize("rate", [0, 1, 999.5, 1_000, 1_000.5, 12_345])
    @pytest.mark.parametrize("units", [1, 2, 7])
    def test_shards_are_as_few_as_one_partition_each_allows(self, rate: float, units: int) -> None:
        shards = shards_for(rate, units)
        assert rate * units / shards <= UNITS_A_SECOND
        assert shards == 1 or rate * units / (shards - 1) > UNITS_A_SECOND


def test_warnings_come_first() -> None:
    full = Fill({"Item": 500}, Partition("SHOP#s", 10))
    indexes = {"gsi1": Fill({}), "gsi2": Fill({"Item": 400}), "gsi3": Fill({})}
    severities = [finding.severity for finding in goods.advise(Measurement(full, indexes, {})).findings]
    assert severities == ["warning", "info", "info", "info", "info"]
