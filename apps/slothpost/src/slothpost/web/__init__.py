"""The web application: pages for people, a JSON API for their scripts, webhooks, and a beat from outside."""
