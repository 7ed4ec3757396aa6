"""The audit of assessors: whether a model's judgments can stand in for people's."""
