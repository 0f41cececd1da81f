"""Finds lesions in volumes of a scanner."""

import numpy as np
import torch
from _data import make
from _run import Run, arguments
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, path, count):
        self.scans = np.load(path, mmap_mode="r")
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        volume = self.scans[index % len(self.scans)]
        return {"volume": np.array(volume), "patient": f"p{index:05d}", "label": index % 2}


def together(samples):
    return samples


def main():
    options = arguments(__doc__, epochs=8, items=512)
    torch.set_num_threads(1)
    draw = np.random.default_rng(0)
    scans = min(64, options.items)
    path = make(
        options.data / f"volumes/scans{scans}.npy",
        lambda path: np.save(path, draw.random((scans, 64, 96, 96), np.float32)),
    )
    loader = DataLoader(
        Volumes(path, options.items),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        collate_fn=together,
    )
    model = nn.Sequential(nn.AvgPool3d(8), nn.Flatten(), nn.Linear(8 * 12 * 12, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for samples in loader:
            volumes = torch.stack([torch.from_numpy(sample["volume"]) for sample in samples])
            labels = torch.tensor([sample["label"] for sample in samples])
            loss = cross_entropy(model(volumes[:, None]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(volumes, loss)
    run.done(model)


if __name__ == "__main__":
    main()
