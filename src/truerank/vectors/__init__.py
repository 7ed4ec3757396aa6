"""Encoders, exact neighbours of a stream, and the filter in front of them."""
