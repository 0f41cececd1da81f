"""Learns from labelled and unlabelled digits side by side."""

import numpy as np
import torch
from _nets import convnet
from _run import Run, arguments
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy, interpolate, mse_loss
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def loader_of(data):
    order = BatchSampler(RandomSampler(data), 32, drop_last=True)
    return DataLoader(data, batch_size=None, sampler=order)


def main():
    options = arguments(__doc__, epochs=30, items=1792)
    digits = load_digits()
    images = torch.from_numpy(digits.images[: options.items].astype(np.float32))[:, None] / 16
    images, labels = interpolate(images, 28), torch.from_numpy(digits.target[: options.items])
    labelled = loader_of(TensorDataset(images[::2], labels[::2]))
    unlabelled = loader_of(TensorDataset(images[1::2]))
    model = convnet(10, channels=24, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for (pictures, targets), (others,) in zip(labelled, unlabelled):
            mirrored = model(others.flip(3)).softmax(1)
            loss = cross_entropy(model(pictures), targets)
            loss = loss + mse_loss(model(others).softmax(1), mirrored)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pictures, loss)
    run.done(model)


if __name__ == "__main__":
    main()
