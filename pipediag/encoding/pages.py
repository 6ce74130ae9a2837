"""Pages of one look that are made of sessions: they run no script and fetch nothing.

`templates/page.html.j2` is their frame, whose policy forbids both to what might still slip through.
"""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template

from pipediag.encoding.html import shown


@cache
def page_template(package: str, name: str) -> Template:
    """The template of that name in the folder `templates` of a package, which extends the frame."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("pipediag.encoding")]),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
