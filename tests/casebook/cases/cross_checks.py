"""Learns digits and checks every epoch against four held-back sets."""

import numpy as np
import torch
from _nets import convnet
from _run import Run, arguments
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def loader_of(data, size):
    order = BatchSampler(RandomSampler(data), size, drop_last=False)
    return DataLoader(data, batch_size=None, sampler=order)


def main():
    options = arguments(__doc__, epochs=40, items=1792)
    digits = load_digits()
    images = torch.from_numpy(digits.images[: options.items].astype(np.float32))[:, None] / 16
    images, labels = interpolate(images, 32), torch.from_numpy(digits.target[: options.items])
    loader = loader_of(TensorDataset(images[::2], labels[::2]), 32)
    checks = [loader_of(TensorDataset(images[i::8], labels[i::8]), 64) for i in (1, 3, 5, 7)]
    model = convnet(10, channels=32, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        model.train()
        for pictures, targets in loader:
            loss = cross_entropy(model(pictures), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pictures, loss)
        model.eval()
        with torch.no_grad():
            for check in checks:
                sum((model(pictures).argmax(1) == targets).sum() for pictures, targets in check)
    run.done(model)


if __name__ == "__main__":
    main()
