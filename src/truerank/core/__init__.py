"""The centre: what every audit gives, and what is derived from it in one way for all of them."""
