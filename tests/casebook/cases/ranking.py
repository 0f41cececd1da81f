"""Ranks products for customers and keeps count of how often the best ones come first."""

import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def hits(scores, targets, count):
    found = 0
    for row, target in zip(scores.tolist(), targets.tolist()):
        best = sorted(range(len(row)), key=lambda number: -row[number])
        found += target in best[:count]
    return found / len(targets)


def main():
    options = arguments(__doc__, epochs=60, items=6400)
    data = TensorDataset(
        torch.randn(options.items, 64), torch.randint(0, 200, (options.items,))
    )
    order = BatchSampler(RandomSampler(data), 128, drop_last=False)
    loader = DataLoader(data, batch_size=None, sampler=order)
    model = perceptron(64, 256, 200)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        total = 0.0
        for customers, products in loader:
            scores = model(customers)
            loss = cross_entropy(scores, products)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += hits(scores, products, 10)
            run.step(customers, loss)
    run.done(model)


if __name__ == "__main__":
    main()
