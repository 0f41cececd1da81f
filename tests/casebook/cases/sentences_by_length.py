"""Predicts the next character of sentences, each batch of sentences of about one length."""

import torch
from _data import passages
from _run import Run, arguments
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(128, 64)
        self.memory = nn.GRU(64, 128, batch_first=True)
        self.output = nn.Linear(128, 128)

    def forward(self, text):
        states, _ = self.memory(self.letters(text))
        return self.output(states)


def batches(count):
    """Between 4 and 32 sentences each, of 32 to 256 characters: the same number of characters."""
    made = []
    for number in range(count):
        length = 32 * 2 ** (number % 4)
        texts = passages(1024 // length, length, seed=number)
        made.append(torch.tensor([list(text.encode("ascii", "replace")) for text in texts]))
    return made


def main():
    options = arguments(__doc__, epochs=7, items=100)
    loader = DataLoader(batches(options.items), batch_size=None, shuffle=True)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for text in loader:
            scores = model(text[:, :-1])
            loss = cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(text, loss)
    run.done(model)


if __name__ == "__main__":
    main()
