"""Text: normalising, words, reformulation types."""
