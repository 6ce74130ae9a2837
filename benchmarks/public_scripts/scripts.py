"""The public scripts of table.toml, made runnable in a folder from mirrors of their repositories.

A mirror is a git directory, `DIR/owner+name/repo` or `DIR/owner/name`; nothing of what it holds is
kept here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("table.toml")
STAND_INS = Path(__file__).with_name("stand_ins")
PACKAGES = "packages"
MAGIC = ("%", "!")


class SourceError(Exception):
    """The script can't be made; the message says why."""


@dataclass(frozen=True)
class Truth:
    """The truth about a script, found without pipediag; `how` says by which probes."""

    bottleneck: tuple[str, ...] = ()
    """Verdicts that are right."""
    where: tuple[str, ...] = ()
    """Parts of the run of which the verdict must name one; empty: any."""
    advice: tuple[str, ...] = ()
    """Rules of which the first that speaks must be one; `none`: silence is right."""
    how: str = ""


@dataclass(frozen=True)
class PublicScript:
    """One script of the table."""

    name: str
    repository: str
    commit: str
    path: str
    sha256: str
    changed: str
    group: str = ""
    """`slow`: chosen because an expert sees by reading why it is slow."""
    data: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Folders of the repository that the script imports."""
    environment: Mapping[str, str] = field(default_factory=dict)
    put: tuple[tuple[int, int, str], ...] = ()
    swap: tuple[tuple[int, str, str], ...] = ()
    until: int | None = None
    expert: tuple[tuple[int, int, str], ...] = ()
    """Lines from..to of the made script and what an expert puts there; to < from: before `from`."""
    beyond: tuple[int, ...] | None = None
    """The first lines of those of these edits that are another algorithm, another layer, or code
    that only its author could write; None where no edit is mechanical."""
    mechanical: tuple[tuple[int, int, str], ...] = ()
    """What stands in their place where a part of them is mechanical."""
    truth: Truth = Truth()


def public_scripts(names: Sequence[str] = ()) -> list[PublicScript]:
    """Return the scripts of the table, or those named, by themselves or by their group.

    Raises:
        SourceError: a name that none has.
    """
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    scripts = [msgspec.convert({"name": n, **entry}, PublicScript) for n, entry in table.items()]
    if unknown := set(names) - {s.name for s in scripts} - {s.group for s in scripts}:
        raise SourceError(f"no script is called {', '.join(sorted(unknown))}")
    return [s for s in scripts if not names or {s.name, s.group} & set(names)]


def made(script: PublicScript, mirrors: Path, folder: Path) -> Path:
    """Write the script with its changes, its data and its packages into a new folder.

    Raises:
        SourceError: there is no mirror, the file is not the published one, or data failed.
    """
    folder.mkdir(parents=True)
    git_directory = mirror(script.repository, mirrors)
    published = _git(git_directory, "show", f"{script.commit}:{script.path}")
    found = hashlib.sha256(published).hexdigest()
    if found != script.sha256:
        raise SourceError(f"{script.path} has the hash {found}, not that of the table")
    _install(script, git_directory, folder / PACKAGES)
    path = folder / f"{script.name}.py"
    text = published.decode("utf-8")
    path.write_text(
        changed(script, from_notebook(text) if script.path.endswith(".ipynb") else text),
        encoding="utf-8",
    )
    _make_data(script, folder)
    return path


def mirror(repository: str, mirrors: Path) -> Path:
    """Return the repository's git directory under `mirrors`.

    Raises:
        SourceError: it has none.
    """
    owner, name = repository.split("/")
    for form in (f"{owner}+{name}/repo", f"{owner}/{name}"):
        if (mirrors / form / "HEAD").is_file():
            return mirrors / form
    raise SourceError(f"{mirrors} has no mirror of {repository}")


def from_notebook(text: str) -> str:
    """Return the code cells of a notebook, a blank line after each, and magic as comments."""
    lines: list[str] = []
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            lines += "".join(cell["source"]).split("\n")
            lines.append("")
    return "\n".join(f"# {line}" if line.startswith(MAGIC) else line for line in lines)


def changed(script: PublicScript, text: str) -> str:
    """Return the text with the table's edits; what stays keeps its line number.

    Raises:
        SourceError: an edit is longer than what it replaces, or its words are not in the line.
    """
    lines = text.split("\n")[: script.until and script.until - 1]
    for first, last, ours in script.put:
        new = ours.split("\n")
        if len(new) > last - first + 1:
            raise SourceError(f"{script.name}: lines {first} to {last} are too few for the edit")
        lines[first - 1 : last] = [*new, *[""] * (last - first + 1 - len(new))]
    for number, old, new_words in script.swap:
        if lines[number - 1].count(old) != 1:
            raise SourceError(f"{script.name}: line {number} has not once {old!r}")
        lines[number - 1] = lines[number - 1].replace(old, new_words)
    return "\n".join(lines) + "\n"


def expert_version(script: PublicScript, text: str, *, mechanical: bool = False) -> str:
    """Return the made script as an expert rewrote it, or with what is mechanical of that alone."""
    edits = script.expert
    if mechanical:
        kept = (one for one in edits if one[0] not in (script.beyond or ()))
        edits = (*kept, *script.mechanical)
    lines = text.split("\n")
    for first, last, ours in sorted(edits, reverse=True):
        lines[first - 1 : last] = ours.split("\n") if ours else []
    return "\n".join(lines)


def environment(script: PublicScript, folder: Path, packages: Path | None) -> dict[str, str]:
    """Return the script's variables: its own home, no display, and what it imports."""
    paths = [str(folder / PACKAGES), *([str(packages)] if packages else [])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "HOME": str(folder),
        "KERAS_HOME": str(folder / ".keras"),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder.parent / "matplotlib"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **script.environment,
    }


def _install(script: PublicScript, git_directory: Path, place: Path) -> None:
    """Install stand-ins and the repository's packages, with the record that an installer writes.

    As installed packages they are not taken for code of the script's own.
    """
    shutil.copytree(STAND_INS, place, ignore=shutil.ignore_patterns("__pycache__"))
    for package in script.packages:
        packed = _git(git_directory, "archive", script.commit, package)
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
    names = [path.relative_to(place).as_posix() for path in place.rglob("*.py")]
    record = place / "public_scripts-0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("".join(f"{name},,\n" for name in names), encoding="utf-8")


def _make_data(script: PublicScript, folder: Path) -> None:
    if not script.data:
        return
    command = [sys.executable, "-m", "benchmarks.public_scripts.made_data", str(folder)]
    done = subprocess.run(
        [*command, *script.data],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        raise SourceError(f"{script.name}: its data could not be made: {done.stderr[-400:]}")


def _git(git_directory: Path, *words: str) -> bytes:
    command = ["git", f"--git-dir={git_directory}", "-c", "safe.directory=*", *words]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise SourceError(done.stderr.decode(errors="replace").strip())
    return done.stdout
