"""What every reader raises for bytes that are no profile."""

from pipediag.errors import PipediagError


class MalformedError(PipediagError):
    """The bytes are no profile of the kind, are damaged, or were cut short.

    The readers say only what is wrong; `trace.reader` makes it a sentence that names the file.
    """


class TooLargeError(PipediagError):
    """The profile is more than could be read in bounded memory and time."""
