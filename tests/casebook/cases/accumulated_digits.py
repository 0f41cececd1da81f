"""Learns digits with four small batches to each update."""

import numpy as np
import torch
from _nets import convnet
from _run import Run, arguments
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

PARTS = 4


def main():
    options = arguments(__doc__, epochs=28, items=1792)
    digits = load_digits()
    images = torch.from_numpy(digits.images[: options.items].astype(np.float32))[:, None] / 16
    data = TensorDataset(interpolate(images, 32), torch.from_numpy(digits.target[: options.items]))
    order = BatchSampler(RandomSampler(data), 16, drop_last=True)
    loader = DataLoader(data, batch_size=None, sampler=order)
    model = convnet(10, channels=32, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for number, (pictures, labels) in enumerate(loader, 1):
            loss = cross_entropy(model(pictures), labels) / PARTS
            loss.backward()
            if number % PARTS == 0:
                optimizer.step()
                optimizer.zero_grad()
            run.step(pictures, loss)
    run.done(model)


if __name__ == "__main__":
    main()
