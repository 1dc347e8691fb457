"""The version of this package, for rooms that do not know the package as a whole."""

VERSION = "0.2.0"
