"""From what happened at GitHub, Vercel and the App Store to activity: webhooks, polls and connections."""
