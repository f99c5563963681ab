"""The narrator: names the kind of a query, and puts facts it is given into a sentence.

For agents whose code decides. It calls no tools and adds no facts.
"""

from __future__ import annotations

import re

from sandbox.standin.conversation import Conversation
from sandbox.standin.needs import classify, read_task
from sandbox.standin.wording import quoted

_CLASSIFY = re.compile(r"\bclassif(?:y|ies|ication)\b|\bwhich (?:bucket|category|kind)\b", re.I)
_QUERY = re.compile(r"\bquery\b\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)


def narrate(conversation: Conversation) -> str:
    """One answer: a single category word when a classification was asked, else a narration."""
    text = conversation.last_user
    if _CLASSIFY.search(conversation.system) or _CLASSIFY.search(text[:300]):
        found = _QUERY.search(text)
        return classify(found[1] if found else text).category
    lines = [line.strip("-* \t") for line in text.splitlines() if line.strip("-* \t")]
    facts = [quoted(line, 200).strip('"') for line in lines[:8]]
    if not facts:
        return "There is nothing to tell yet."
    count = len(read_task(conversation.query).needs)
    return (
        f"For a wish of {count} item(s) this is what the search brought: {'; '.join(facts)}. "
        "The choice goes to the candidate that meets the stated conditions and shows most of "
        "the words asked for."
    )
