"""Summarises a text by its most important sentences.

A sentence counts by the words that the text keeps coming back to, more if it stands early, less the more it repeats of
what was taken before. Markdown is read for its prose: code, tables, badges and addresses say little about a text.
"""

import math
import re
from collections import Counter

from atlas.runtime.base import AgentBase

# Words that carry the grammar and not the matter.
COMMON = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by can
    could did do does doing done down during each either else every few for from further get had has have having he her
    here hers him his how i if in into is it its itself just let like made make many may me might more most much must my
    neither no nor not now of off often on once one only or other our ours out over own per same see shall she should so
    some such than that the their them then there these they this those through to too two under until up upon us use
    used uses using very via was we were what when where which while who whom why will with within without would yet you
    your yours
    """.split()
)

# A full stop after these does not end a sentence.
ABBREVIATIONS = frozenset("e.g i.e etc vs cf approx resp no nr fig mr mrs ms dr prof st inc ltd".split())

WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s+|$)")
LIST_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


def paragraphs(text):
    """The prose of a text, a paragraph each, and the words of its headings."""
    found, lines, headings = [], [], []

    def close():
        if lines:
            found.append(plain(" ".join(lines)))
            lines.clear()

    fence = None
    for line in text.splitlines():
        stripped = line.strip()
        mark = re.match(r"(`{3,}|~{3,})", stripped)
        if fence or mark:
            # Inside a block of code, until a fence like the one that opened it.
            if not fence:
                close()
                fence = mark.group(1)
            elif mark and mark.group(1).startswith(fence):
                fence = None
        elif not stripped or re.fullmatch(r"(?:[-*_=]\s*){3,}", stripped):
            close()
        elif re.match(r"#{1,6}\s", stripped):
            close()
            headings.append(plain(stripped.lstrip("# ")))
        elif stripped.startswith(("|", "<", "[![", "![")) or (line.startswith(("    ", "\t")) and not lines):
            close()
        elif LIST_ITEM.match(line):
            close()
            lines.append(LIST_ITEM.sub("", line).strip())
        else:
            lines.append(stripped.removeprefix("> "))
    close()
    return [paragraph for paragraph in found if paragraph], headings


def plain(text):
    """The text without the marks of Markdown."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\[\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    text = re.sub(r"<[^<>\s][^<>]*>|\bhttps?://[^\s)>]+", "", text)
    text = re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("`", "")).strip()


def sentences(paragraph):
    """The sentences of a paragraph."""
    start = 0
    for end in SENTENCE_END.finditer(paragraph):
        before = paragraph[start : end.start()].rsplit(" ", 1)[-1].lower().lstrip("(")
        following = paragraph[end.end() :].lstrip()[:1]
        single_stop = end.group().startswith(".") and not end.group().startswith("..")
        abbreviated = single_stop and (before in ABBREVIATIONS or (len(before) == 1 and before.isalpha()))
        if (abbreviated or following.islower()) and following:
            continue
        yield paragraph[start : end.end()].strip()
        start = end.end()
    rest = paragraph[start:].strip()
    if rest:
        yield rest


def stem(word):
    """The word without the endings of plural and tense, so that forms of one word count together."""
    for ending, least in (("ies", 4), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith(("ss", "us", "is", "as")):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


def telling(sentence):
    """The words of a sentence that carry its matter."""
    words = (re.sub(r"['’]s$", "", word.lower()) for word in WORD.findall(sentence))
    return [word for word in words if len(word) > 1 and word not in COMMON and not word.isdigit()]


def terms(sentence):
    """The same, with all forms of a word as one."""
    return [stem(word) for word in telling(sentence)]


def keywords(candidates, spread, most):
    """The words that stand in the most sentences, each in the form in which it stands most often."""
    forms = {}
    for sentence in candidates:
        for word in telling(sentence):
            forms.setdefault(stem(word), Counter())[word] += 1
    repeated = sorted((word for word in spread if spread[word] > 1), key=lambda word: (-spread[word], word))
    return [min(forms[word].items(), key=lambda form: (-form[1], form[0]))[0] for word in repeated[:most]]


def ranked(candidates, headings, count):
    """The indexes of the best sentences, best first, and in how many sentences each word stands."""
    bags = [Counter(terms(sentence)) for sentence in candidates]
    # In how many sentences a word stands, not how often: one sentence full of a word does not make it the matter.
    spread = Counter(word for bag in bags for word in bag)
    titles = {word for heading in headings for word in terms(heading)}
    weight = {word: math.log1p(found) * (1.3 if word in titles else 1.0) for word, found in spread.items()}

    def score(index):
        bag = bags[index]
        size = sum(bag.values())
        words = len(WORD.findall(candidates[index]))
        if size < 3 or words < 5:
            return 0.0
        # Dividing by the root, not by the length, keeps both one-liners and monsters from winning.
        told = sum(weight[word] for word in bag) / math.sqrt(size)
        told *= 1.0 + 0.5 / (1.0 + index)
        complete = 1.0 if candidates[index][-1] in ".!?…”\"'’)" else 0.6
        return told * complete * (0.5 if words > 60 else 1.0)

    scores = [score(index) for index in range(len(candidates))]
    taken, covered = [], Counter()
    while len(taken) < min(count, len(candidates)):
        def gain(index):
            bag = bags[index]
            known = sum(1 for word in bag if covered[word])
            return scores[index] * (1.0 - 0.7 * known / (len(bag) or 1))

        best = max((index for index in range(len(candidates)) if index not in taken), key=gain)
        if scores[best] == 0.0 and taken:
            break
        taken.append(best)
        covered.update(bags[best].keys())
    return taken, spread


class Extract(AgentBase):
    async def execute(self, input_data):
        prose, headings = paragraphs(input_data["text"])
        candidates = list(dict.fromkeys(sentence for paragraph in prose for sentence in sentences(paragraph)))
        # A bound on the work: what comes after a few thousand sentences changes no summary.
        candidates = candidates[:5000]
        if not candidates:
            return {"summary": "", "sentences": [], "sentence_count": 0, "keywords": []}
        taken, spread = ranked(candidates, headings, input_data.get("max_sentences", 3))
        chosen = [candidates[index] for index in sorted(taken)]
        return {
            "summary": " ".join(chosen),
            "sentences": chosen,
            "sentence_count": len(candidates),
            "keywords": keywords(candidates, spread, 8),
        }
