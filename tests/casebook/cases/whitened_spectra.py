"""Classifies materials from whitened blocks of spectra."""

import numpy as np
import torch
from _nets import convnet
from _run import Run, arguments
from threadpoolctl import threadpool_limits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


def start(worker):
    threadpool_limits(4)


class Blocks(Dataset):
    def __init__(self, count):
        self.count = count
        self.mixing = np.random.default_rng(2).normal(size=(192, 192)).astype(np.float32)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = np.random.default_rng(index)
        block = draw.normal(size=(256, 192)).astype(np.float32) @ self.mixing
        left, scale, right = np.linalg.svd(block - block.mean(0), full_matrices=False)
        return torch.from_numpy((left @ right)[None]), index % 4


def main():
    options = arguments(__doc__, epochs=4, items=640)
    torch.set_num_threads(1)
    loader = DataLoader(
        Blocks(options.items),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=start,
    )
    model = convnet(4, channels=8, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for blocks, labels in loader:
            loss = cross_entropy(model(blocks), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(blocks, loss)
    run.done(model)


if __name__ == "__main__":
    main()
