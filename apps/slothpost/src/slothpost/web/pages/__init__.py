"""The pages: rendered on the server, and complete without JavaScript; small scripts make them quicker."""

from slothpost.web.pages import (
    accounts,
    activity,
    connect,
    health,
    plans,
    post,
    product_form,
    products,
    review,
    settings,
    sign_in,
    users,
    week,
    write,
)

_MODULES = (
    review, post, write, week, activity, products, product_form, plans, connect, accounts, settings, users, sign_in, health
)  # fmt: skip

PAGE_ROUTES = [handler for module in _MODULES for handler in module.HANDLERS]
