"""How features and fixes are told, one or several: in any case, where users have them, and where they are still to come."""

from __future__ import annotations

from slothpost.drafting.frames import frames

FEATURE = frames(
    announce=(
        "{I} just added {added} to {product}.",
        "{product} update: {I} {did}.",
        "New for {product}: {thing}.",
        "New for {product}: {novelty}.",
    ),
    progress=(
        "The latest work on {product}: {I} {did}.",
        "Another piece of {product} is done: {thing}.",
        "One more thing done for {product}: {thing}.",
        "Building {product}, step by step. The latest step: {thing}.",
        "A bit of progress on {product}: {I} {did}.",
        "Worked on {product} again. The result: {thing}.",
        "Latest change to {product}: {says}.",
        "The latest work on {product}: {says}.",
    ),
    changelog=(
        "From the {product} changelog: {item}.",
        "{product} changelog, newest entry: {item}.",
    ),
    question=(
        "{product} update: {I} {did}. What should come next?",
        "{I} {did}. What should {I} build next for {product}?",
        "{says}. What should {product} do next?",
    ),
    introduction=(
        "{product}: {description}\n\nThe latest addition: {thing}.",
        "{product}: {description}\n\nLatest change: {I} {did}.",
        "{product}: {description}\n\nNew: {novelty}.",
        "{product}: {description}\n\nLatest change: {says}.",
    ),
    before_after=(
        "{before}\n\nSo {I} {did}.",
        "{before}\n\nThat is over: {I} {did}.",
        "{before}\n\nNot any more: {I} {did}.",
    ),
)

FEATURE_LIVE = frames(
    announce=(
        "{product} now has {noun}.",
        "You can now {can} in {product}.",
        "New in {product}: {novelty}.",
        "{product} {does}.",
        "Now live in {product}: {thing}.",
        "{says}. New in {product}.",
        "{product} update: {says}.",
        "In {product}, {says}.",
    ),
    before_after=(
        "{product} had no {lacked} so far. That has changed.",
        "No {lacked} in {product}? That was true until now.",
        "Until now there was no way to {can} in {product}. Now there is.",
        "Can you {can} in {product}? Now you can.",
        "{before}\n\nNow you can {can}.",
        "{before}\n\nThat is over. You can now {can} in {product}.",
        "{before}\n\nNew in {product}: {novelty}.",
        "{before}\n\nNow {product} has {noun}.",
        "{before}\n\n{product} {does}.",
    ),
    question=(
        "{product} now has {noun}. What is still missing for you?",
        "You can now {can} in {product}. Would you use that?",
        "New in {product}: {novelty}. What should come next?",
        "{product} {does}. Is that useful to you?",
    ),
    update=(
        "One change in {product}: it {does}.",
        "If you use {product}: you can now {can}.",
        "If you use {product}: it {does}.",
        "A thing that makes {product} nicer to use: it {does}.",
        "A thing that makes {product} nicer to use: you can now {can}.",
        "If you use {product}: {says}.",
        "For everyone who uses {product}: {thing}.",
        "{product} got an update: {thing}.",
        "{product} got an update: you can now {can}.",
    ),
)

FEATURE_COMING = frames(
    teaser=(
        "Coming to {product}: {novelty}.",
        "In the next version of {product}: {novelty}.",
        "In the next version of {product} you can {can}.",
        "The next version of {product} {will}.",
    ),
    progress=(
        "Done for the next version of {product}: {thing}.",
        "In the making for {product}: a way to {can}.",
        "Work on the next version of {product} goes on. It {will}.",
    ),
    question=(
        "The next version of {product} {will}. Is that useful to you?",
        "In the next version of {product} you can {can}. Would you use that?",
    ),
)

FIX = frames(
    repair=(
        "{product} update: {I} {did}.",
        "One bug less in {product}: {I} {did}.",
        "Fixed in {product}: {fixed}.",
        "Bug fixed in {product}: {bug}.",
        "A repair for {product}: {novelty}.",
        "In {product}, {I} found and fixed {bug}.",
    ),
    progress=(
        "Not everything {I} do for {product} is a new feature. The latest: {I} {did}.",
        "Some days are for repairs. In {product}, {I} {did}.",
        "Latest work on {product}: {I} {did}.",
        "Latest repair in {product}: {novelty}.",
    ),
    question=(
        "Fixed in {product}: {fixed}. Have you seen anything else that is off? Tell {me}.",
        "{product} update: {I} {did}. Does anything else bother you?",
    ),
    changelog=(
        "From the {product} changelog: {item}.",
        "{product} changelog, newest entry: {item}.",
    ),
    before_after=("{before}\n\nThat is over: {I} {did}.", "{before}\n\nNot any more: {I} {did}."),
)

FIX_LIVE = frames(
    repair=("{product} {does}.", "One fix in {product}: it {does}.", "{says}. Fixed in {product}."),
    apology=(
        "You may have noticed {bug} in {product}. That is fixed now.",
        "If {product} annoyed you with {bug}: that is fixed.",
        "Sorry if you ran into {bug} in {product}. That is fixed now.",
        "Gone from {product}: {bug}.",
    ),
    question=("{product} {does}. Is anything else off? Tell {me}.",),
    update=("If you use {product}: it {does}.",),
)

FIX_COMING = frames(
    teaser=(
        "The next version of {product} comes with a fix for {bug}.",
        "Fixed for the next version of {product}: {fixed}.",
        "The next version of {product} {will}.",
    ),
    progress=("Work on the next version of {product} goes on. It {will}.",),
)

SEVERAL = frames(
    small_wins=(
        "Recent work on {product}:\n\n{items}",
        "A few changes to {product}:\n\n{items}",
        "What {I} did for {product} lately:\n\n{items}",
        "{count} changes to {product}:\n\n{items}",
    ),
    since_last=(
        "{since}What changed in {product} since {my} last post:\n\n{items}",
        "{since}Since {my} last post about {product}:\n\n{items}",
    ),
    changelog=("{product} changelog, newest entries:\n\n{items}", "Fresh from the {product} changelog:\n\n{items}"),
    announce=(
        "Two changes to {product}: {I} {did_both}.",
        "{product} update: {I} {did_both}.",
        "{I} {did} and {did_too}. Both are for {product}.",
        "The latest work on {product}: {I} {did_both}.",
    ),
    question=(
        "What changed in {product}:\n\n{items}\n\nWhich one would you use?",
        "Recent work on {product}:\n\n{items}\n\nWhat should come next?",
    ),
    progress=(
        "Where {my} time on {product} went:\n\n{items}",
        "Building {product}, step by step. The latest steps:\n\n{items}",
    ),
    introduction=("{product}: {description}\n\nLatest changes:\n\n{items}",),
)

SEVERAL_LIVE = frames(
    announce=(
        "New in {product}:\n\n{items}",
        "What's new in {product}:\n\n{items}",
        "New in {product}: {novelty}. Also new: {novelty_too}.",
        "You can now {can} in {product}. Also new: {novelty_too}.",
        "{product} {does}. And {I} {did_too}.",
        "{product} now has {noun}. And {noun_too}.",
    ),
    update=(
        "If you use {product}, this is new:\n\n{items}",
        "{product} got better in {count} places:\n\n{items}",
        "If you use {product}: you can now {can}. And {I} {did_too}.",
    ),
)

SEVERAL_COMING = frames(
    teaser=(
        "Coming to {product}:\n\n{items}",
        "In the next version of {product}:\n\n{items}",
        "Done for the next version of {product}:\n\n{items}",
    ),
)

FIXES = frames(
    repair=(
        "Fixed in {product}:\n\n{fixes}",
        "Repairs in {product}:\n\n{fixes}",
        "{count} bugs less in {product}:\n\n{fixes}",
    ),
    progress=("Some days are for repairs. Fixed in {product}:\n\n{fixes}",),
    question=("Fixed in {product}:\n\n{fixes}\n\nHave you seen anything else that is off? Tell {me}.",),
)

NAMELESS = frames(
    announce=("{I} {did}.", "{says}.", "New: {novelty}."),
    progress=("The latest: {I} {did}.", "Another piece is done: {thing}.", "Latest change: {says}."),
    changelog=("From {my} changelog: {item}.", "Newest entry in {my} changelog: {item}."),
    question=("{I} {did}. What should come next?", "New: {novelty}. What should come next?"),
)
"""For titles that name the product themselves."""
