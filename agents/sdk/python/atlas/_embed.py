"""Makes vectors of texts with a package of this machine: `python -I -B _embed.py MODEL`. The worker starts it, not an agent.

Lines of JSON. In: {id, dimensions, texts}. Out: {ready} or {failed} once, then {id, tokens, vectors} or {id, error} for each line. A vector
is the Base64 of its numbers as f32, least byte first.
"""

import base64
import json
import math
import os
import sys
from array import array
from pathlib import Path

# A line has at most 256 KiB of text, of which JSON may make six times as much.
LINE_BYTES_MAX = 4 << 20
# The package fills up the texts of a group to the longest one, and needs a few hundred KiB for each KiB of them.
GROUP_BYTES_MAX = 64 << 10


def main(model):
    answers = os.fdopen(os.dup(1), "wb")
    # What packages print is no answer.
    os.dup2(2, 1)

    def say(**members):
        answers.write(json.dumps(members).encode() + b"\n")
        answers.flush()

    try:
        make = MODELS[model]()
    except Exception as error:
        say(failed=_told(error))
        return 1
    say(ready=True)
    while line := sys.stdin.buffer.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX:
            return 1
        asked = json.loads(line)
        try:
            vectors, tokens = _embed(make, asked["texts"], asked["dimensions"])
            say(id=asked["id"], tokens=tokens, vectors=vectors)
        except Exception as error:
            say(id=asked["id"], error=_told(error))
    return 0


def _told(error):
    return f"{type(error).__name__}: {error}"[:300]


def _embed(make, texts, dimensions):
    vectors, tokens = [None] * len(texts), 0
    for places in _groups([len(text) for text in texts]):
        rows, more = make([texts[place] for place in places])
        tokens += more
        for place, row in zip(places, rows, strict=True):
            vectors[place] = _written(row[:dimensions])
    return vectors, tokens


def _groups(lengths):
    """Texts of about the same length, by their places."""
    group = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        # The longest one so far is this one.
        if group and (len(group) + 1) * lengths[place] > GROUP_BYTES_MAX:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _written(row):
    """A vector of the length 1, unless it is all zeros."""
    length = math.hypot(*row) or 1.0
    numbers = array("f", [number / length for number in row])
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def _wordllama():
    import wordllama

    # Its weights and its tokenizer are in the package. Version 0.4 looks for the tokenizer in the folder of caches only, so that is the package.
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(config="l2_supercat", dim=256, cache_dir=folder, disable_download=True)
    tokenize, counted = model.tokenize, []

    def counting(texts):
        encoded = tokenize(texts)
        counted.append(sum(sum(text.attention_mask) for text in encoded))
        return encoded

    model.tokenize = counting

    def make(texts):
        counted.clear()
        rows = model.embed(texts, return_np=False)
        return rows, sum(counted)

    return make


MODELS = {"wordllama": _wordllama}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
