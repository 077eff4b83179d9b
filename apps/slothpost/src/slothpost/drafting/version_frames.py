"""How versions, reviews, milestones and deployments are told."""

from __future__ import annotations

from slothpost.drafting.frames import frames

RELEASE = frames(
    announce=(
        "{release} is out.",
        "{release} is out:\n\n{items}",
        "{release} is out. New: {novelty}.",
        "{release} is out, now with {noun}.",
        "{I} just released {release}.",
        "{release}, “{name}”, is out.",
    ),
    notes=(
        "{release} in short:\n\n{items}",
        "What is new in {release}:\n\n{items}",
        "New in {release}: {novelty}.",
        "In {release} you can {can}.",
        "“{name}”, or {release}:\n\n{items}",
    ),
    update=(
        "If you use {product}: version {version} is out.",
        "If you use {product}: version {version} is out, with this:\n\n{items}",
        "Time for an update: {release} is out. New: {novelty}.",
    ),
    progress=(
        "{release} is done and released.",
        "Another version of {product} is out. In {version}:\n\n{items}",
        "{release} is done. The main thing in it: {novelty}.",
    ),
    question=(
        "{release} is out. What should go into the next version?",
        "{release} is out:\n\n{items}\n\nWhat should come next?",
        "{release} is out, with {noun}. What should come next?",
    ),
    introduction=(
        "{product}: {description}\n\nVersion {version} is out.",
        "{product}: {description}\n\nNew in {version}:\n\n{items}",
        "{product}: {description}\n\nNew in {version}: {novelty}.",
    ),
)

APP_RELEASE = frames(
    announce=(
        "{release} is in the App Store.",
        "{release} is in the App Store:\n\n{items}",
        "{release} is in the App Store. New: {novelty}.",
        "{release} is in the App Store, now with {noun}.",
        "The App Store has {release} now.",
    ),
    notes=(
        "New in {release}, which is in the App Store now:\n\n{items}",
        "What {release} brings to the App Store:\n\n{items}",
        "In the App Store now: {release}, with {noun}.",
        "In {release} you can {can}. It is in the App Store now.",
    ),
    update=(
        "If you use {product}: version {version} is in the App Store.",
        "An update for {product} is in the App Store:\n\n{items}",
        "Time for an update: {release} is in the App Store. New: {novelty}.",
        "An update for {product} is in the App Store.",
    ),
    progress=(
        "Apple approved {release}. It is in the App Store now.",
        "Through review and in the App Store: {release}. New: {novelty}.",
        "Apple approved {release}, and it is in the App Store now:\n\n{items}",
    ),
    question=(
        "{release} is in the App Store. What should the next version bring?",
        "{release} is in the App Store:\n\n{items}\n\nWhat should the next version bring?",
        "{release} is in the App Store, with {noun}. What should the next version bring?",
    ),
    introduction=(
        "{product}: {description}\n\n{release} is in the App Store now.",
        "{product}: {description}\n\nNew in {version}, in the App Store now:\n\n{items}",
        "{product}: {description}\n\nNew in {version}: {novelty}. It is in the App Store now.",
    ),
)

REVIEW = frames(
    teaser=(
        "{release} is in review at Apple. More when it is approved.",
        "Apple is reviewing {release}. More when it is through.",
        "Next for {product}: {upcoming}, in review at Apple now.",
    ),
    progress=(
        "{release} is done on {my} side. Now it is Apple's turn to review it.",
        "Sent off and in review: {release}.",
    ),
    question=("While Apple reviews {release}: what would you like to see after it?",),
    introduction=("{product}: {description}\n\nThe next version is in review at Apple.",),
)

BETA = frames(
    teaser=("A new beta of {product} is with its testers.", "The testers of {product} have a new beta."),
    progress=("The next version of {product} is in beta. Now it has to hold up.", "{product} has a new beta. Testing goes on."),
    question=("A new beta of {product} is out. If you test it: tell {me} what breaks.",),
    introduction=("{product}: {description}\n\nA new beta is with its testers.",),
)

MILESTONE = frames(
    thanks=(
        "{stars} stars on GitHub for {product}. Thank you.",
        "{product} has {stars} stars on GitHub now. Thank you to everyone who found it useful.",
        "{stars} people have starred {product} on GitHub. Thank you.",
    ),
    progress=(
        "{stars} stars on GitHub for {product}, and the work goes on.",
        "{product} is at {stars} stars on GitHub. Back to building.",
    ),
    question=(
        "{stars} stars on GitHub for {product}. If you use it: what for?",
        "{product} has {stars} stars on GitHub now. What should {I} build next?",
    ),
    introduction=("{product}: {description}\n\nIt has {stars} stars on GitHub now. Thank you.",),
)

DEPLOYMENT = frames(
    update=("A new version of {product} is live.", "{product} was updated, and the new version is live."),
    progress=("The work on {product} goes on: a new version is live.",),
    question=("A new version of {product} is live. What should come next?",),
    introduction=("{product}: {description}\n\nA new version is live.",),
)
