"""What an audit found in the forms of other places: MTEB, the CONDA database, Hugging Face.

Every form is made from `Contamination`: who leaks into which test set, how much, and by what evidence.
"""
