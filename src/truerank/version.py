"""The version of truerank, apart from the package so that every module may read it."""

__version__ = "0.2.0"
