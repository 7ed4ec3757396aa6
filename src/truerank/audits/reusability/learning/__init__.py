"""Active judging: a learner that says which document is judged next, simulated and live."""
