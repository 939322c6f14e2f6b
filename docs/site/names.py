"""Public names in the text lead to their reference pages: ``solve(...)`` in any page, without a word of markup."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import felicific

#: A public name, alone or called.
NAME = re.compile(r"(?:felicific\.)?(\w+)(?:\(.*\))?$", re.DOTALL)


class LinkNames(SphinxTransform):
    """Wrap every public name that is set as code in a link to its page."""

    default_priority = 499

    def apply(self, **settings: Any) -> None:
        """Once for every page; headings and links stay as they are."""
        for literal in list(self.document.findall(nodes.literal)):
            match = NAME.match(literal.astext())
            inside = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)
            parent = literal.parent
            while parent is not None and not isinstance(parent, inside):
                parent = parent.parent
            if match is None or match[1] not in felicific.__all__ or parent is not None:
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"felicific.{match[1]}", refexplicit=True,
                refdoc=self.env.docname, refwarn=True,
            )  # fmt: skip
            literal.replace_self(link)
            link += literal


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
