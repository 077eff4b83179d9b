"""English for titles of changes: verbs and their forms, articles, and titles as parts of sentences."""
