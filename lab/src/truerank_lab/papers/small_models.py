"""Small transformers for where no checkpoint can be had: a T5 with random weights, and the first layers of MiniLM.

The T5's word pieces are learnt from the documents (byte pairs, which come out the same each time, in place of
T5's unigrams) and hold monoT5's prompt and answers. The weights are drawn from the seed: what monoT5 becomes when it is
trained from here says nothing about T5.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from truerank.sources import open_documents
from truerank.vectors.encoders.model_folder import packaged_folder

#: What monoT5 cannot do without, beside the words of the documents.
PROMPT = ("Query:", "Document:", "Relevant:", "true", "false")
OFTEN = 100_000
PIECES = 6_000
WEIGHTS = ("*.safetensors", "*.bin", "*.onnx", "onnx", "__pycache__", "*.py")


def save_small_t5(folder: Path, docs: Sequence[str], *, layers: int = 4, width: int = 256, seed: int = 0) -> None:
    """Writes tokenizer, configuration and weights; what is there already is kept."""
    if folder.is_dir():
        return
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    special = ["<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    trainer = trainers.BpeTrainer(vocab_size=PIECES, special_tokens=special, show_progress=False)
    texts = (document.text for source in docs for document in open_documents(source))
    # The prompt often enough to become pieces, before anything else does.
    tokenizer.train_from_iterator(chain([" ".join(PROMPT)] * OFTEN, texts), trainer)
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    config = T5Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=width, d_kv=width // 4, d_ff=4 * width, num_heads=4,
        num_layers=layers, num_decoder_layers=layers, decoder_start_token_id=0,
    )  # fmt: skip
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    with _folder(folder) as temporary, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        T5ForConditionalGeneration(config).save_pretrained(temporary)
        wrapped.save_pretrained(temporary)


def save_first_layers(folder: Path, layers: int) -> None:
    """Writes the first layers of the packaged MiniLM, a BERT; what is there already is kept."""
    if folder.is_dir():
        return
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(str(packaged_folder()))
    encoder.encoder.layer = encoder.encoder.layer[:layers]
    encoder.config.num_hidden_layers = layers
    with _folder(folder) as temporary:
        # Tokenizer and pooling stay as they are.
        shutil.copytree(packaged_folder(), temporary, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*WEIGHTS))
        encoder.save_pretrained(temporary)


@contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that takes its name when the block ends without an error."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
