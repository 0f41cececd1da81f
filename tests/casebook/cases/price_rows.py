"""Estimates prices from tabular data, with a tenth held back for validation."""

import torch
from _nets import perceptron
from _run import Run, arguments
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset, random_split


def main():
    options = arguments(__doc__, epochs=32, items=120_000)
    torch.set_num_threads(1)
    houses = torch.rand(options.items, 24)
    prices = houses @ torch.rand(24, 1) + 0.1 * torch.randn(options.items, 1)
    held = options.items // 10
    train, validation = random_split(TensorDataset(houses, prices), [options.items - held, held])
    loader = DataLoader(
        train, batch_size=512, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )
    model = perceptron(24, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        model.train()
        for rows, targets in loader:
            loss = mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(rows, loss)
        model.eval()
        with torch.no_grad():
            rows, targets = (tensor[validation.indices] for tensor in validation.dataset.tensors)
            mse_loss(model(rows), targets)
    run.done(model)


if __name__ == "__main__":
    main()
