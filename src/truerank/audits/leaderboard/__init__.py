"""Leaderboards: which rows are comparable, which ranks the scores support, and which claims hold."""

from truerank.audits.leaderboard.audit import Leaderboard, LeaderboardOptions, leaderboard

__all__ = ["Leaderboard", "LeaderboardOptions", "leaderboard"]
