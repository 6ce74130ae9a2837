"""The TensorFlow that the script would import, looked at before anything is started."""

from __future__ import annotations

from pipediag.errors import PipediagError
from pipediag.sensors.tensorflow_builds import installed_builds
from pipediag.tensorflow_versions import OLDEST, is_too_old, too_old_sentence


def check_tensorflow() -> None:
    """Refuse a TensorFlow that can't be measured, where the installer noted which one is there.

    Raises:
        PipediagError: every build that is installed is too old.
    """
    versions = list(installed_builds().values())
    if versions and all(map(is_too_old, versions)):
        oldest = ".".join(map(str, OLDEST))
        raise PipediagError(
            f"{too_old_sentence(versions[0])} The script was not run. Install pipediag beside "
            f"TensorFlow {oldest} or newer."
        )
