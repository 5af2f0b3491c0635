"""Formats a text in a style."""

from atlas.runtime.base import AgentBase


def markdown(content):
    return "# Output\n\n" + content


def bullet(content):
    """One bullet a sentence; a sentence ends at a full stop with a space after it."""
    sentences = (sentence.strip() for sentence in content.split(". "))
    return "\n".join("- " + sentence for sentence in sentences if sentence)


STYLES = {"markdown": markdown, "uppercase": str.upper, "bullet": bullet}


class Formatter(AgentBase):
    async def execute(self, input_data):
        content, style = input_data["content"], input_data["style"]
        apply = STYLES.get(style)
        formatted = apply(content) if apply else f"[{style}] {content}"
        return {"formatted": formatted, "style_applied": style}
