"""Sentence embeddings without network access: the model is part of a package, or in a folder that you give."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dropdtw.problem.inputs import Array


def embed(texts: Sequence[str], model: str | os.PathLike[str] = "wordllama") -> Array:
    """(n, d) float32 embeddings of sentences, as unit vectors; a text without words is all zeros.

    model : "wordllama": averaged word vectors (d = 256) that are part of that package; or the folder of a
        sentence-transformers model, such as a copy of all-MiniLM-L6-v2. Nothing is downloaded in either case.
    """
    wanted = list(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in wanted):
        raise ValueError("texts is not a list of strings; give a list of strings")
    vectors = _wordllama_vectors(wanted) if model == "wordllama" else _transformer_vectors(wanted, Path(model))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Array = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


def _wordllama_vectors(texts: list[str]) -> Array:
    model = _wordllama()
    vectors = np.asarray(model.embed(texts), np.float32).reshape(len(texts), -1 if texts else 256)
    vectors[[not text.strip() for text in texts]] = 0  # the mean over no words
    return vectors


@cache
def _wordllama() -> Any:
    before = logging.root.handlers[:]
    level = logging.root.level
    try:
        import wordllama
    except ImportError as error:
        raise ImportError("sentence embeddings need wordllama: pip install 'dropdtw[text]'") from error
    finally:  # undo the logging that its import configures for the whole program
        logging.root.handlers[:] = before
        logging.root.setLevel(level)
    # The package contains weights and tokenizer; without these two arguments it would look elsewhere and download.
    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def _transformer_vectors(texts: list[str], folder: Path) -> Array:
    return np.asarray(_transformer(folder).encode(texts, show_progress_bar=False), np.float32).reshape(len(texts), -1)


@cache
def _transformer(folder: Path) -> Any:
    if not folder.is_dir():
        raise FileNotFoundError(
            f"model is {str(folder)!r}, which is not a folder; give 'wordllama' or the folder of a "
            "sentence-transformers model (nothing is downloaded)"
        )
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(f"{folder} needs sentence-transformers: pip install sentence-transformers") from error
    return SentenceTransformer(str(folder), local_files_only=True)
