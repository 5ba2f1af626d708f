"""Release patient data for research without giving patients away."""

from leeward.version import __version__

__all__ = ["__version__"]
