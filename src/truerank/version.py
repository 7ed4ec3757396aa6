"""The version of truerank, apart from the package so that every module may read it."""

__all__ = ["__version__"]

__version__ = "0.1.0"
