"""What the made-up developer shipped in the weeks before the demo, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slothpost.demo.made_products import ProductKey


class Merged(msgspec.Struct, frozen=True, tag="merged"):
    """A pull request. If the product has a project at Vercel, it is deployed, too."""

    title: str
    body: str = ""
    labels: tuple[str, ...] = ()


class Pushed(msgspec.Struct, frozen=True, tag="pushed"):
    """Commits that went to the main branch without a pull request."""

    messages: tuple[str, ...]


class Released(msgspec.Struct, frozen=True, tag="released"):
    tag: str
    name: str
    notes: str


class InReview(msgspec.Struct, frozen=True, tag="in_review"):
    """A version of the app waits for Apple."""

    version: str


class InStore(msgspec.Struct, frozen=True, tag="in_store"):
    """A version of the app went live."""

    version: str
    notes: str


class Starred(msgspec.Struct, frozen=True, tag="starred"):
    """The star with which a repository has so many."""

    count: int


class Deployed(msgspec.Struct, frozen=True, tag="deployed"):
    """A deployment of the website, whose project belongs to no product."""

    message: str


Thing = Merged | Pushed | Released | InReview | InStore | Starred | Deployed


class Shipped(msgspec.Struct, frozen=True):
    """A thing, on a day before the demo, at a time on the wall clock."""

    day: int
    at: str
    product: ProductKey
    thing: Thing


SHIPPED: Sequence[Shipped] = (
    Shipped(-19, "14:10", "portpeek", Merged("Add sorting by port or by program")),
    Shipped(
        -18, "11:05", "steepwell",
        Merged(
            "Set the timer by taking a photo of the tea box",
            "Until now you had to look up the right time yourself. "
            "Steepwell reads the name of the tea, and knows the rest.",
            ("enhancement",),
        ),
    ),
    Shipped(-18, "12:40", "plainbill", Pushed(("Bump eslint from 9.1.0 to 9.2.0", "Fix flaky test of the invoice list"))),
    Shipped(
        -18, "15:10", "plainbill",
        Merged(
            "Add payment reminders for overdue invoices",
            "Until now every reminder had to be written by hand. "
            "A friendly one goes out after seven days, and a firmer one after twenty.",
        ),
    ),
    Shipped(-18, "20:45", "portpeek", Merged("Show the start time of each program")),
    Shipped(
        -16, "10:20", "portpeek",
        Released(
            "v1.8.0", "1.8",
            "## What's new\n- The folder that a program was started in\n- The start time of each program\n"
            "- Fix wrong program names after a restart\n\n## Internal\n- Update the release workflow",
        ),
    ),
    Shipped(
        -16, "11:15", "steepwell",
        Merged(
            "Add timers for the second and third infusion",
            "Good leaves can be brewed more than once, and each infusion takes longer than the one before.",
        ),
    ),
    Shipped(-15, "16:40", "plainbill", Merged("Show the sum of all unpaid invoices on the start page")),
    Shipped(
        -15, "20:05", "steepwell",
        Merged("Fix the bell staying silent when the phone is muted", "Tea went bitter while nobody heard a thing."),
    ),
    Shipped(-14, "18:20", "portpeek", Merged("Add a watch mode that refreshes the list every second")),
    Shipped(-13, "09:50", "steepwell", Pushed(("chore: update the screenshots for the App Store", "chore: bump version to 2.4"))),
    Shipped(-12, "09:00", "steepwell", InReview("2.4")),
    Shipped(
        -12, "17:45", "portpeek",
        Merged(
            "Find ports that are held inside containers",
            "Before, a container only showed up under the name of the program that runs it. "
            "The list names the container and its image.",
        ),
    ),
    Shipped(
        -11, "08:20", "steepwell",
        InStore(
            "2.4",
            "- Point the camera at a box of tea, and the timer is set\n- Timers for the second and third infusion\n"
            "- Fix the bell staying silent when the phone is muted",
        ),
    ),
    Shipped(
        -11, "14:05", "plainbill",
        Merged(
            "Fix wrong due dates on invoices sent on the last day of a month",
            "An invoice of the 31st was due a day too early in shorter months.",
            ("bug",),
        ),
    ),
    Shipped(
        -10, "10:30", "plainbill",
        Merged(
            "Let clients pay by scanning a code on the invoice",
            "Before, clients typed long account numbers from a page. The banking app on their phone fills in everything.",
        ),
    ),
    Shipped(-9, "13:00", "portpeek", Starred(500)),
    Shipped(
        -9, "15:20", "steepwell",
        Merged("Add a lock screen widget that counts down", "You see how long the tea still needs without unlocking the phone."),
    ),
    Shipped(-8, "19:10", "steepwell", Merged("Keep the timer running when the app is closed")),
    Shipped(
        -8, "20:40", "plainbill", Pushed(("Refactor the numbering of invoices", "Rename InvoiceService to Invoices", "Fix typo"))
    ),
    Shipped(-6, "12:15", "steepwell", Deployed("Show the lock screen widget on the start page")),
    Shipped(-6, "18:30", "portpeek", Pushed(("Bump clap from 4.5.1 to 4.5.4", "Fix typo in README", "ci: cache the build"))),
    Shipped(-6, "21:05", "steepwell", Starred(250)),
    Shipped(
        -5, "13:15", "plainbill",
        Merged(
            "Export all invoices of a year as one file for the tax office",
            "Before, each invoice had to be downloaded by itself.",
            ("enhancement",),
        ),
    ),
    Shipped(
        -5, "14:40", "portpeek",
        Merged(
            "Add a way to stop the program that holds a port",
            "Until now you copied the number of the process into another command. "
            "Portpeek asks first, and never stops a program of the system.",
        ),
    ),
    Shipped(
        -5, "16:30", "steepwell",
        Merged("Add tea suggestions for the time of day", "In the evening, Steepwell leaves out what would keep you awake."),
    ),
    Shipped(-4, "10:00", "steepwell", Pushed(("Clean up unused images", "Bump the build number"))),
    Shipped(-3, "10:10", "portpeek", Merged("Fix missing ports of programs that other users run")),
    Shipped(-3, "17:25", "plainbill", Merged("Duplicate an invoice with one tap")),
    Shipped(
        -2, "11:00", "portpeek",
        Released(
            "v1.9.0", "1.9",
            "## What's new\n- A way to stop the program that holds a port\n- Names of containers and their images\n"
            "- A watch mode that refreshes every second\n\n## Fixed\n- Missing ports of programs that other users run",
        ),
    ),
    Shipped(-2, "13:30", "steepwell", Deployed("Add a page about brewing tea twice")),
    Shipped(-2, "16:00", "plainbill", Merged("Fix rounding errors on invoices with two tax rates", labels=("bug",))),
    Shipped(
        -1, "11:20", "steepwell",
        Merged(
            "Add links that share a tea with friends",
            "Until now a favourite tea stayed on one phone. Whoever opens the link has the tea with its times.",
            ("enhancement",),
        ),
    ),
    Shipped(-1, "14:50", "steepwell", InReview("2.5")),
    Shipped(-1, "15:30", "steepwell", Merged("Fix a crash when a tea has no name")),
)  # fmt: skip

# What Steepwell brings when the demo starts again on a later day, in turn.
COMING: Sequence[Merged] = (
    Merged("Remember which teas you drink most", "They come first in the list, so most cups are one tap away."),
    Merged("Add a timer for cold brew", "Until now a timer ended after an hour at the latest. Cold brew takes a night."),
    Merged("Show the water temperature in large numbers", "You can read it while the kettle is in your other hand."),
    Merged("Let the watch ring instead of the phone", "The bell does not wake anybody else in the morning."),
    Merged("Add notes to every tea", "Write down what was too strong, and read it before the next cup."),
    Merged("Warn when a tea is almost used up", "Steepwell counts the cups that you brew from each box."),
    Merged("Add sorting by colour and country", "Large collections had one long list so far."),
)
