"""The tables of docs/guides/table.md, which are good examples: nothing about them is to be remarked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "table.md"


def guide_classes() -> dict[str, Any]:
    """Define `shop`, `site` and `desk` anew, with the imports and classes that the guide shows."""
    names: dict[str, Any] = {"__name__": "guide_tables"}
    for snippet in re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for block in re.split(r"\n\n(?=\S)", snippet):
            if re.match(r"class |from |import |(shop|site|desk) = Table\(", block):
                exec(block, names)
    return names
