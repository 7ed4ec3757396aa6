"""Every training set against every test set: the suite file, the comparison, its verdicts, page and picture."""
