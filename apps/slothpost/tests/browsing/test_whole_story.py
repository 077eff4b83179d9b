"""From an empty page to published posts, as a new user would: sources, drafts over a change of clocks, review, and failures."""

from __future__ import annotations

from datetime import timedelta

import aiohttp
from browser.visitor import DESK, Visitor
from browsing.conftest import Served, Visit

from installation import berlin
from slothpost.model import Post
from slothpost.standins.deliveries import Signed, appstore_delivery
from slothpost.standins.vercel import LocalProject

MINUTE = timedelta(minutes=1)


async def test_from_an_empty_page_to_posts_on_both_networks(served: Served, visit: Visit) -> None:
    here = served.installation
    here.clock.set(berlin("2027-03-22 10:00"))  # the Monday of the week whose Sunday changes clocks
    ada = await visit(size=DESK)
    ada.refusals.add(404)  # local networks have no icon
    await _create_the_product(ada)
    (product,) = await here.app.products.list("ada")
    for network in ("x", "threads"):
        await _connect(ada, served, network, product.id)

    # GitHub tells of a feature, Vercel of its deployment, and the App Store of a version.
    github = await _begin_webhook(ada, served, product.id, "github")
    repository = served.github.add_repository("ada/teapot")
    sha = "3f" * 20
    pushed = repository.pushed(github[1], "feat: tea timers survive a restart", shas=[sha])
    assert await _deliver(github[0], pushed) == 202
    assert await _deliver(github[0], pushed) in (200, 202)  # a replay, which is taken once
    project = await _connect_vercel(ada, served, product.id)
    deployment = served.vercel.deploy(project, "feat: tea timers survive a restart", sha=sha)
    assert await _deliver(f"{served.url}/webhooks/vercel", served.vercel.delivery(project, deployment)) == 202
    appstore = await _begin_webhook(ada, served, product.id, "appstore")
    assert await _deliver(appstore[0], _live(appstore[1])) == 202
    await here.for_(MINUTE)
    await ada.open(f"/activity?product={product.id}")
    await ada.sees("Tea timers survive a restart")
    told = await here.app.activities.recent("ada", product.id)
    assert len(told.items) == 2  # the push and the deployment are one

    # At 21:00 on the wall clock the evening before, a draft waits for Thursday.
    await here.until(berlin("2027-03-24 20:59"))
    assert [post.slot_at for post in await here.posts(product)] == [berlin("2027-03-23 09:00")]
    await here.until(berlin("2027-03-24 21:00:05"))
    assert [slot.at for slot in await here.slots(product)][-1] == berlin("2027-03-25 09:00")

    # The first one was not decided by its slot: it is held, edited, and approved for the next slot.
    await _sign_in_again(ada, served)
    await ada.sees("nobody decided before its slot")
    (post,) = await here.posts(product)
    await ada.open(f"/posts/{post.id}")
    await ada.page.get_by_role("button", name="Edit").or_(ada.page.locator("summary", has_text="Edit")).first.click()
    await ada.page.locator("textarea[name=text]").first.fill("Tea timers now survive a restart. It took three attempts.")
    await ada.page.get_by_role("button", name="Save").first.click()
    await ada.sees("It took three attempts.")
    await ada.page.get_by_role("button", name="Approve").first.click()
    await ada.page.wait_for_load_state()
    assert (await here.post(post)).slot_at == berlin("2027-03-25 09:00")
    await here.until(berlin("2027-03-25 09:01"))
    await _sign_in_again(ada, served)
    assert [each.text for each in here.x.posts] == ["Tea timers now survive a restart. It took three attempts."]
    await ada.open(f"/posts/{post.id}")
    await ada.sees("published")
    assert await ada.page.get_by_role("link", name="X").first.count() == 1

    # Threads drafts for Monday at 21:00 on Sunday, after clocks have changed.
    await here.until(berlin("2027-03-28 21:00:05"))
    (thread,) = await here.posts(product, "threads")
    assert (thread.history[0].at, thread.slot_at) == (berlin("2027-03-28 21:00"), berlin("2027-03-29 09:00"))
    await _sign_in_again(ada, served)
    await ada.page.get_by_role("button", name="Approve").first.click()
    await ada.sees("Approved for Tomorrow, 09:00.")
    await here.until(berlin("2027-03-29 09:01"))
    assert ((await here.post(thread)).state, len(here.threads.posts)) == ("published", 1)


async def test_what_goes_wrong_is_shown_with_what_to_do(served: Served, visit: Visit) -> None:
    here = served.installation
    product = await here.a_channel({"tue": "09:00", "thu": "09:00"})
    ada = await visit(size=DESK)

    async def approved(text: str) -> Post:
        written = await here.app.drafts.write("ada", product.id, "x", text, by="Ada", slot_at=here.now() + MINUTE)
        return await here.app.review.approve("ada", written.id, by="Ada")

    # Too long: the count says by how much, and it cannot be approved.
    await here.a_draft(product, "tea " * 80)
    await ada.open("/")
    await ada.sees("Shorten it by 39")
    assert await ada.page.get_by_role("button", name="Approve").first.is_disabled()

    # A duplicate is failed in the network's own words.
    for text in ("The kettle whistles again.", "The kettle whistles again."):
        await approved(text)
        await here.for_(2 * MINUTE)
    await ada.open("/")
    await ada.sees("You are not allowed to create a Tweet with duplicate content.")

    # A limit postpones until its end.
    here.x.faults.limit(1, reset_at=here.now() + timedelta(minutes=30))
    limited = await approved("A limited thing.")
    await here.for_(2 * MINUTE)
    await ada.open(f"/posts/{limited.id}")
    await ada.sees("asks to wait")
    await here.for_(timedelta(minutes=30))
    assert (await here.post(limited)).state == "published"

    # An answer that is lost: a person says that it went out.
    here.x.faults.take_then_drop(1)
    unclear = await approved("Is it out?")
    await here.for_(2 * MINUTE)
    await ada.open(f"/posts/{unclear.id}")
    await ada.sees("Did it go out?")
    await ada.fill(url=here.x.posts[-1].url)
    await ada.page.get_by_role("button", name="It went out").first.click()
    await ada.sees("published")
    assert (await here.post(unclear)).url == here.x.posts[-1].url

    # A token that is dead: everything waits for a new connection.
    here.x.revoke_all()
    held = await approved("This one waits.")
    await here.for_(2 * MINUTE)
    await ada.open(f"/posts/{held.id}")
    await ada.sees("must be connected again")
    assert (await here.post(held)).state == "approved"

    # Wrong signatures are refused, and nothing is stored.
    url, secret = await _begin_webhook(ada, served, product.id, "github")
    delivery = served.github.add_repository("ada/teapot").pushed(secret, "feat: kettles")
    assert await _deliver(url, Signed({**delivery.headers, "x-hub-signature-256": "sha256=" + "0" * 64}, delivery.body)) == 401
    assert (await here.app.activities.recent("ada", product.id)).items == []


async def _sign_in_again(ada: Visitor, served: Served) -> None:
    """Start a session, since one lasts twelve hours, and open the review page."""
    await ada.open(await served.sign_in_path())
    await ada.press("Sign in", ada.page.locator("main"))
    await ada.page.wait_for_load_state()


async def _create_the_product(ada: Visitor) -> None:
    await ada.follow("Create a product")
    await ada.fill(name="Teapot", url="https://teapot.example.com", description="Tea, on time.")
    await ada.press("Create product")
    x, threads = ada.page.locator("#x"), ada.page.locator("#threads")
    await x.get_by_label("Tuesday").fill("09:00")
    await x.get_by_label("Thursday").fill("09:00")
    await ada.press("Save the plan", x)
    await threads.get_by_label("Monday").fill("09:00")
    await ada.press("Save the plan", threads)


async def _connect(ada: Visitor, served: Served, network: str, product: str) -> None:
    await ada.open(f"/products/{product}")
    await ada.page.locator(f"#{network}").get_by_role("link", name="Connect an account").click()
    await ada.page.get_by_role("button", name="Allow").or_(ada.page.get_by_role("button", name="Authorize")).first.click()
    await ada.page.wait_for_url(f"{served.url}/**")
    await ada.sees("Connected.")


async def _begin_webhook(ada: Visitor, served: Served, product: str, source: str) -> tuple[str, str]:
    await ada.open(f"/products/{product}/connect/{source}")
    await ada.press("Only a webhook" if source == "github" else "Continue")
    return (
        await ada.page.locator("#webhook-url").input_value(),
        await ada.page.locator("#webhook-secret").input_value(),
    )


async def _connect_vercel(ada: Visitor, served: Served, product: str) -> LocalProject:
    project = served.vercel.add_project("teapot", "user_ada")
    await ada.open(f"/products/{product}/connect/vercel")
    await ada.page.get_by_role("link", name="Install at Vercel").click()
    await ada.page.get_by_role("link", name="Install for user_ada").click()
    await ada.page.wait_for_url(f"{served.url}/**")
    await ada.press("Connect")
    await ada.sees("Wait for a deployment")
    return project


async def _deliver(url: str, signed: Signed) -> int:
    async with aiohttp.ClientSession() as session, session.post(url, headers=signed.headers, data=signed.body) as answer:
        return answer.status


def _live(secret: str) -> Signed:
    return appstore_delivery(
        secret,
        {
            "type": "appStoreVersionAppVersionStateUpdated",
            "id": "5d6c1f0a-0001-4a55-9f5e-2f0d5a3a9c11",
            "version": 1,
            "attributes": {"oldValue": "IN_REVIEW", "newValue": "READY_FOR_DISTRIBUTION", "timestamp": "2027-03-22T09:00:00Z"},
            "relationships": {"instance": {"data": {"type": "appStoreVersions", "id": "8a1b"}}},
        },
    )
