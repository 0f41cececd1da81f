"""Predicts clicks from 32 numbers a visitor."""

import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader, TensorDataset


def main():
    options = arguments(__doc__, epochs=30, items=100_000)
    visitors = torch.randn(options.items, 32)
    clicks = (visitors[:, :4].sum(1) + torch.randn(options.items) > 0).float()
    loader = DataLoader(TensorDataset(visitors, clicks), batch_size=256, shuffle=True)
    model = perceptron(32, 64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = Run()
    for _ in range(options.epochs):
        for rows, targets in loader:
            loss = binary_cross_entropy_with_logits(model(rows).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(rows, loss)
    run.done(model)


if __name__ == "__main__":
    main()
