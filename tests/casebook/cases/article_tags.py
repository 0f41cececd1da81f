"""Tags articles from the words in them."""

import re
import zlib

import torch
from _data import passages
from _run import Run, arguments
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")
VOCABULARY = 20_000


def encode(text):
    return [zlib.crc32(word.encode()) % VOCABULARY for word in WORD.findall(text.lower())]


def collate(articles):
    encoded = [torch.tensor(encode(text)) for text, _ in articles]
    starts = torch.tensor([0, *(len(words) for words in encoded[:-1])]).cumsum(0)
    return torch.cat(encoded), starts, torch.tensor([tag for _, tag in articles])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCABULARY, 64)
        self.tags = nn.Linear(64, 10)

    def forward(self, words, starts):
        return self.tags(self.words(words, starts))


def main():
    options = arguments(__doc__, epochs=20, items=800)
    texts = passages(options.items, 12_000)
    articles = [(text, text.count("self") % 10) for text in texts]
    loader = DataLoader(articles, batch_size=32, shuffle=True, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    run = Run()
    for _ in range(options.epochs):
        for words, starts, tags in loader:
            loss = cross_entropy(model(words, starts), tags)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(starts, loss)
    run.done(model)


if __name__ == "__main__":
    main()
