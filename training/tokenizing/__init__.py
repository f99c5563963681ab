"""Tokenizers of the Qwen3 family: loaded, built from published ranks, or trained small."""

from training.tokenizing.loading import load_tokenizer, tokenizer_hash

__all__ = ["load_tokenizer", "tokenizer_hash"]
