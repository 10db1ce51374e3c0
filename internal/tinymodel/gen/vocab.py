"""The toy vocabulary of the tiny models: a byte-level BPE over printable ASCII, the same in tokenizer.json and in GGUF.

Ids 0, 1, 2 are <unk>, <s>, </s>; then the 95 printable ASCII characters and the newline (as byte-level BPE spells them);
then as many merges as fit. Bytes that have no token cannot be encoded: it is a vocabulary for tests of models, not of text.
"""
import json

SPECIAL = ["<unk>", "<s>", "</s>"]
CHARS = ["Ġ"] + [chr(c) for c in range(0x21, 0x7F)] + ["Ċ"]
MERGES = ["t h", "i n", "e r", "a n", "o n", "th e", "Ġ the", "r e", "Ġ a", "in g", "e n", "o r", "an d", "Ġ and",
          "e s", "a t", "Ġ t", "i s", "i t", "o u", "a r", "s t", "l e", "Ġ o", "Ġ i", "Ġ s", "l l", "v e", "c h"]


def pieces(vocab):
    """The tokens and the merges of a vocabulary of exactly vocab entries (99 to 128)."""
    merges = MERGES[:vocab - len(SPECIAL) - len(CHARS)]
    tokens = SPECIAL + CHARS + [m.replace(" ", "") for m in merges]
    assert len(tokens) == vocab == len(set(tokens)), (len(tokens), vocab)
    return tokens, merges


def write_tokenizer(folder, vocab):
    """Writes tokenizer.json and tokenizer_config.json."""
    tokens, merges = pieces(vocab)
    doc = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, t in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges},
    }
    (folder / "tokenizer.json").write_text(json.dumps(doc, ensure_ascii=False, separators=(",", ":")) + "\n")
    conf = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
            "add_bos_token": False, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(conf) + "\n")


def gguf_vocab(writer, vocab):
    """Adds the same vocabulary to a GGUF file."""
    from gguf import TokenType
    tokens, merges = pieces(vocab)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if t in SPECIAL else TokenType.NORMAL for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
