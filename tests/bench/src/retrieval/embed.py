"""Static embeddings: reads a JSON list of texts, and writes 256 floats of four bytes for each, with the weights inside the package
`wordllama`."""

import json
import pathlib
import sys

try:
    import wordllama
    from safetensors import safe_open
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference
except ImportError:
    sys.exit(69)

package = pathlib.Path(wordllama.__file__).parent
tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
with safe_open(str(package / "weights" / "l2_supercat_256.safetensors"), framework="np") as weights:
    embedding = weights.get_tensor("embedding.weight")
model = WordLlamaInference(tokenizer=tokenizer, embedding=embedding)
vectors = model.embed(json.load(sys.stdin), norm=True)
sys.stdout.buffer.write(vectors.astype("<f4").tobytes())
