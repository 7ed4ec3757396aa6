"""Audits: each reads as propose, judge, estimate, act, measure."""
