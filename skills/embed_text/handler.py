# SPDX-License-Identifier: Apache-2.0
"""The hash embedder: what answers where no model is installed.

The bytes of the text's SHA-256, over and over, as numbers from 0 to 1. Equal texts have equal
vectors and that is all: nothing here knows what words mean, and `model_used` says so.
"""

import hashlib
import math

DIMENSIONS = {"all-MiniLM-L6-v2": 384, "all-mpnet-base-v2": 768, "paraphrase-MiniLM-L6-v2": 384}


def embed_text(text: str, model: str = "all-MiniLM-L6-v2", normalize: bool = True) -> dict:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    dimension = DIMENSIONS[model]
    vector = [byte / 255 for byte in digest] * (dimension // len(digest))
    if normalize:
        length = math.sqrt(sum(number * number for number in vector))
        vector = [number / length for number in vector] if length else vector
    return {"embedding": vector, "dimension": dimension, "model_used": "hash-embedder:" + model,
            "text_length": len(text), "normalized": normalize}
