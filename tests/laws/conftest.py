"""The trial method is a tree of its own, collected where test_trial.py has put it into a copy of the repository."""

collect_ignore = ["trial"]
