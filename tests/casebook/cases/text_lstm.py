"""Predicts the next byte of Python's own library with an LSTM."""

import torch
from _data import library_text
from _run import Run, arguments
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes = nn.Embedding(256, 64)
        self.memory = nn.LSTM(64, 192, batch_first=True)
        self.output = nn.Linear(192, 256)

    def forward(self, text):
        states, _ = self.memory(self.bytes(text))
        return self.output(states)


def main():
    options = arguments(__doc__, epochs=6, items=1600)
    text = torch.frombuffer(bytearray(library_text().encode()), dtype=torch.uint8)
    data = TensorDataset(text[: options.items * 97].reshape(-1, 97))
    order = BatchSampler(RandomSampler(data), 16, drop_last=True)
    loader = DataLoader(data, batch_size=None, sampler=order)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for (pieces,) in loader:
            pieces = pieces.long()
            loss = cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pieces, loss)
    run.done(model)


if __name__ == "__main__":
    main()
