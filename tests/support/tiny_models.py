"""Small transformers with random weights, written to folders as their checkpoints are: BERT, RoBERTa, T5, ColBERT."""

from __future__ import annotations

import string
from pathlib import Path

WORDS = ["what", "is", "the", "speed", "of", "sound", "light", "in", "water", "air", "##s", "measure", "##ment"]
_SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert_tokenizer(folder: Path) -> int:
    """A word-piece tokenizer of single characters and a few words; returns the size of its vocabulary."""
    from transformers import BertTokenizerFast

    letters = list(string.ascii_lowercase + string.digits + string.punctuation)
    words = [*_SPECIAL, *letters, *(f"##{letter}" for letter in string.ascii_lowercase), *WORDS]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(vocab=vocabulary, do_lower_case=True).save_pretrained(folder)
    return len(vocabulary)


def bert_config(size: int, **options: object) -> object:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=512, initializer_range=0.3, **options,
    )  # fmt: skip


def save_bert(folder: Path, *, labels: int | None) -> Path:
    """A classifier with so many labels, or an encoder without a head."""
    import torch
    from transformers import BertForSequenceClassification, BertModel

    torch.manual_seed(7)
    size = bert_tokenizer(folder)
    if labels is None:
        BertModel(bert_config(size)).save_pretrained(folder)
    else:
        BertForSequenceClassification(bert_config(size, num_labels=labels)).save_pretrained(folder)
    return folder


def save_colbert(folder: Path) -> Path:
    """BERT and a linear layer to 8 dimensions."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertModel

    torch.manual_seed(8)
    size = bert_tokenizer(folder)
    config = bert_config(size, architectures=["HF_ColBERT"])
    model = BertModel(config, add_pooling_layer=False)
    state = {f"bert.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file({**state, "linear.weight": torch.randn(8, 32)}, folder / "model.safetensors")
    config.save_pretrained(folder)
    return folder


def save_ance(folder: Path) -> Path:
    """RoBERTa with ANCE's head, named as in the authors' checkpoints."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    torch.manual_seed(9)
    folder.mkdir(parents=True, exist_ok=True)
    marks = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*marks, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        mask_token="<mask>", cls_token="<s>", sep_token="</s>",
    ).save_pretrained(folder)  # fmt: skip
    config = RobertaConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=514, pad_token_id=1, initializer_range=0.3, architectures=["RobertaDot"],
    )  # fmt: skip
    encoder = RobertaModel(config)
    state = {f"roberta.{name}": tensor.contiguous() for name, tensor in encoder.state_dict().items()}
    head = {"embeddingHead.weight": torch.randn(24, 32), "embeddingHead.bias": torch.randn(24)}
    norm = {"norm.weight": torch.rand(24) + 0.5, "norm.bias": torch.randn(24)}
    save_file({**state, **head, **norm}, folder / "model.safetensors")
    config.save_pretrained(folder)
    return folder


def save_t5(folder: Path) -> Path:
    """A T5 with a unigram tokenizer that splits at blanks, as T5's does."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    torch.manual_seed(10)
    folder.mkdir(parents=True, exist_ok=True)
    letters = string.ascii_letters + string.digits + string.punctuation
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [("▁true", -3.0), ("▁false", -3.0), ("▁Query", -3.0), ("▁Document", -3.0), ("▁Relevant", -3.0)]
    pieces += [("▁speed", -4.0), ("▁sound", -4.0), ("▁water", -4.0), ("▁the", -4.0)]
    pieces += [(letter, -6.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    config = T5Config(
        vocab_size=len(pieces), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        initializer_factor=2.0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
