"""Two versions of a collection of pages made of real abstracts, with faults planted where the truth is known."""
