"""Predicts clicks from identifiers, with a table of vectors for each kind."""

import torch
from _nets import perceptron
from _run import Run, arguments
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Model(nn.Module):
    def __init__(self, kinds, size):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 32) for _ in range(kinds))
        self.top = perceptron(32 * kinds, 512, 256, 1)

    def forward(self, identifiers):
        vectors = [table(column) for table, column in zip(self.tables, identifiers.unbind(1))]
        return self.top(torch.cat(vectors, 1)).squeeze(1)


def main():
    options = arguments(__doc__, epochs=16, items=32_768)
    identifiers = torch.randint(0, 5000, (options.items, 8))
    clicks = (identifiers.sum(1) % 2).float()
    data = TensorDataset(identifiers, clicks)
    order = BatchSampler(RandomSampler(data), 256, drop_last=True)
    loader = DataLoader(data, batch_size=None, sampler=order)
    model = Model(8, 5000)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    run = Run()
    for _ in range(options.epochs):
        for rows, targets in loader:
            loss = binary_cross_entropy_with_logits(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(rows, loss)
    run.done(model)


if __name__ == "__main__":
    main()
