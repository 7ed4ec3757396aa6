"""What the small rankers share: vocabularies, word vectors, batches of words."""
