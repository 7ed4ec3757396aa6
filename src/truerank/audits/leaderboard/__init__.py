"""Leaderboards: which rows are comparable, which ranks the scores support, and which claims hold."""

from truerank.audits.leaderboard.audit import Leaderboard, leaderboard
from truerank.audits.leaderboard.options import LeaderboardOptions

__all__ = ["Leaderboard", "LeaderboardOptions", "leaderboard"]
