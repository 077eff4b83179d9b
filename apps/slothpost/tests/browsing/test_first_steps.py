"""A new user in a browser: sign in, create a product, set its plans, connect an account."""

from __future__ import annotations

import aiohttp
from browser.visitor import DESK
from browser.visitors import fits_fingers
from browsing.conftest import Served, Visit

from installation import berlin
from slothpost.standins.deliveries import github_delivery


async def test_from_the_link_to_plans_that_say_when_they_draft_and_post(served: Served, visit: Visit) -> None:
    new = await visit(None)
    await new.open("/products")
    assert new.path == "/sign-in?next=%2Fproducts"
    await new.sees("Open the sign-in link that you were given.")
    await new.open(await served.sign_in_path())
    await new.sees("Welcome, Ada.")
    await new.press("Sign in", new.page.locator("main"))
    await new.sees("Start with a product")
    await fits_fingers(new)

    # A product, with a mistake on the way.
    await new.follow("Create a product")
    await new.fill(name="Teapot", url="https://teapot.example.com", description="Tea, on time.")
    new.refusals.add(422)
    await new.page.get_by_text("Timing").click()
    await new.fill(lead_minutes="soon")
    await new.press("Create product")
    await new.sees("'soon' is not a number of minutes")
    assert await new.page.locator("#description").input_value() == "Tea, on time."
    await new.fill(lead_minutes="720")
    await new.press("Create product")
    await new.sees("not scheduled")
    await fits_fingers(new)

    # X on Tuesday and Thursday at nine; the flag of the old days is refused next to its day.
    x = new.page.locator("#x")
    await x.get_by_label("Monday").fill('{"enabled": true}')
    await x.get_by_label("Tuesday").fill("09:00")
    await x.get_by_label("Thursday").fill("9:00")
    await new.press("Save the plan", x)
    await new.sees("mon.enabled is an unknown field: a day is on when it has a 'time'", x)
    assert await x.get_by_label("Tuesday").input_value() == "09:00"
    assert await x.get_by_label("Monday").get_attribute("aria-invalid") == "true"
    await x.get_by_label("Monday").fill("")
    await new.press("Save the plan", x)
    assert await x.locator("[data-next-draft]").inner_text() == "Today, 21:00"
    assert await x.locator("[data-next-slot]").inner_text() == "Tomorrow, 09:00"
    await x.get_by_text("Why").click()
    await new.sees("The drafting of this channel is not due yet: it fires next at Today, 21:00", x)

    # Threads on Mondays; today's slot at nine has passed at ten.
    threads = new.page.locator("#threads")
    await threads.get_by_label("Monday").fill("09:00")
    served.installation.clock.advance(3600)
    await new.press("Save the plan", threads)
    assert await threads.locator("[data-next-draft]").inner_text() == "Sun 7 Mar, 21:00"
    assert await threads.locator("[data-next-slot]").inner_text() == "Mon 8 Mar, 09:00"
    (product,) = await served.installation.app.products.list("ada")
    view = await served.installation.app.plans.view("ada", product.id, "x")
    assert (view.next_draft, view.next_slot) == (berlin("2027-03-01 21:00"), berlin("2027-03-02 09:00"))

    # A pause takes both away.
    await new.press("Pause", x)
    assert await x.locator("[data-next-draft]").inner_text() == "none: this channel is paused"
    await new.press("Resume", x)
    assert await x.locator("[data-next-draft]").inner_text() == "Today, 21:00"


async def test_an_account_is_connected_at_the_network_and_used(served: Served, visit: Visit) -> None:
    product = await served.installation.a_channel({"tue": "09:00"}, connected=False)
    ada = await visit(size=DESK)
    ada.refusals.add(404)  # the local network has no icon
    await ada.open(f"/products/{product.id}")
    await ada.page.locator("#x").get_by_role("link", name="Connect an account").click()
    await ada.page.get_by_role("button", name="Allow").or_(ada.page.get_by_role("button", name="Authorize")).first.click()
    await ada.page.wait_for_url(f"{served.url}/**")
    await ada.sees("Connected.")
    (account,) = await served.installation.app.accounts.list("ada")
    await ada.sees(f"@{account.handle}")
    assert (await served.installation.app.plans.view("ada", product.id, "x")).state.hold_reason is None


async def test_an_invited_person_joins_with_the_zone_of_their_browser(served: Served, visit: Visit) -> None:
    await served.installation.app.users.create("Olga", is_operator=True, id="olga")
    olga, guest = await visit("olga", size=DESK), await visit(None)
    await olga.go("Settings")
    await olga.press("Invite somebody")
    link = await olga.page.locator("#shown-invitation").input_value()
    await guest.open(link.removeprefix(served.url))
    assert await guest.page.locator("#zone").input_value() == "Europe/Berlin"
    await guest.fill(name="Grace")
    await guest.press("Join")
    await guest.sees("No products yet")
    guest.refusals.add(404)
    assert await guest.open(link.removeprefix(served.url)) == 404
    await olga.reload()
    await olga.go("Settings")
    await olga.sees("Grace")


async def test_a_wizard_turns_green_when_the_first_delivery_comes(served: Served, visit: Visit) -> None:
    product = await served.installation.a_product()
    ada = await visit()
    await ada.open(f"/products/{product.id}/connect/github")
    await fits_fingers(ada)
    await ada.press("Only a webhook")
    await ada.sees("Waiting for the first delivery")
    url, secret = [await ada.page.locator(f"#webhook-{part}").input_value() for part in ("url", "secret")]
    delivery = github_delivery(secret, "ping", {"zen": "Tea first."})
    async with aiohttp.ClientSession() as session, session.post(url, headers=delivery.headers, data=delivery.body) as answer:
        assert answer.ok
    await ada.sees("It works: the first signed delivery has arrived.")
    await ada.look()
