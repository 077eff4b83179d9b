"""From activity to a draft: choose what is worth telling, write it, check it."""
