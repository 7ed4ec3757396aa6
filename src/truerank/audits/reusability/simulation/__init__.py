"""The judging of a track simulated: trials with all teams and without each, and what they say."""
