"""Recognises activities in windows of nine sensors."""

import numpy as np
import torch
from _nets import wavenet
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, count):
        draw = np.random.default_rng(5)
        self.signal = draw.normal(size=(9, count * 64 + 256)).astype(np.float32)
        self.activity = draw.integers(0, 6, count)

    def __len__(self):
        return len(self.activity)

    def __getitem__(self, index):
        return self.signal[:, index * 64 : index * 64 + 256], self.activity[index]


def collate(samples):
    windows = torch.tensor([window for window, _ in samples])
    return windows, torch.tensor([activity for _, activity in samples])


def main():
    options = arguments(__doc__, epochs=20, items=3200)
    loader = DataLoader(Windows(options.items), batch_size=64, shuffle=True, collate_fn=collate)
    model = wavenet(6, channels=9)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for windows, activities in loader:
            loss = cross_entropy(model(windows), activities)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(windows, loss)
    run.done(model)


if __name__ == "__main__":
    main()
