"""truerank inside other packages, one module for each. Nothing here is imported unless you ask for it."""
