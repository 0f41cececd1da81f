"""Predicts the next byte of a stream of files that is read once from end to end."""

import torch
from _data import library_text
from _run import Run, arguments
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, text, count):
        self.text = text
        self.count = count

    def __iter__(self):
        for number in range(self.count):
            piece = self.text[number * 96 : number * 96 + 97]
            yield torch.frombuffer(bytearray(piece), dtype=torch.uint8).long()


def main():
    options = arguments(__doc__, epochs=5, items=1600)
    loader = DataLoader(Stream(library_text().encode(), options.items), batch_size=16)
    letters, memory = nn.Embedding(256, 64), nn.GRU(64, 192, batch_first=True)
    output = nn.Linear(192, 256)
    model = nn.ModuleList([letters, memory, output])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for text in loader:
            states, _ = memory(letters(text[:, :-1]))
            loss = cross_entropy(output(states).flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(text, loss)
    run.done(model)


if __name__ == "__main__":
    main()
