"""Train the tokenizer and the classifier of intents.py, and write intents_tokenizer.json, intents.npz and
intents_corpus.txt: `python recipes/models/intents_train.py`."""

import numpy as np
import torch
from intents import HERE, NAMES, Intents, encode, requests
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ODD = (
    "RÉSUMÉ résumé Re\u0301sume\u0301", "what about 東京 or 서울?", "🎵 louder!!! 🎵", "a\u200bb\tc\u00a0d", "[SEP] x [MASK]",
    "don't, can't, won't", "supercalifragilisticexpialidocious", "", "   ",
)  # fmt: skip


def train():
    found = requests()
    learned = [each for n, each in enumerate(found) if n % 5]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=list(SPECIAL))
    tokenizer.train_from_iterator((text for text, _ in learned), trainer)
    ends = [(each, tokenizer.token_to_id(each)) for each in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    tokenizer.save(str(HERE / "intents_tokenizer.json"))
    texts = [*(text for text, _ in found[::5]), *ODD]
    (HERE / "intents_corpus.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (HERE / "intents_labels.txt").write_text("\n".join(NAMES) + "\n")

    torch.manual_seed(0)
    model = Intents(tokenizer.get_vocab_size())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    feeds, labels = encode([text for text, _ in learned]), torch.tensor([n for _, n in learned])
    for _ in range(60):
        for some in torch.randperm(len(labels)).split(64):
            batch = {name: each[some] for name, each in feeds.items()}
            loss = torch.nn.functional.cross_entropy(model(**batch), labels[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    np.savez_compressed(
        HERE / "intents.npz",
        **{name: each.numpy().astype(np.float16) for name, each in model.state_dict().items()},
    )


if __name__ == "__main__":
    train()
