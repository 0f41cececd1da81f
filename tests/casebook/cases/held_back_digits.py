"""Learns digits and looks after each epoch how well it does on the ones held back."""

import numpy as np
import torch
from _nets import convnet
from _run import Run, arguments
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def main():
    options = arguments(__doc__, epochs=80, items=1792)
    digits = load_digits()
    images = torch.from_numpy(digits.images[: options.items].astype(np.float32))[:, None] / 16
    data = TensorDataset(images, torch.from_numpy(digits.target[: options.items]))
    held = TensorDataset(*data[: options.items // 2])
    data = TensorDataset(*data[options.items // 2 :])
    order = BatchSampler(RandomSampler(data), 32, drop_last=False)
    loader = DataLoader(data, batch_size=None, sampler=order)
    validation = DataLoader(held, batch_size=1)
    model = convnet(10, channels=16, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        model.train()
        for pictures, labels in loader:
            loss = cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pictures, loss)
        model.eval()
        correct = 0
        with torch.no_grad():
            for pictures, labels in validation:
                correct += (model(pictures).argmax(1) == labels).sum()
    run.done(model)


if __name__ == "__main__":
    main()
