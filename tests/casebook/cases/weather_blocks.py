"""Predicts the next hour of a weather field from the last, stored in files of one week each."""

import numpy as np
import torch
from _data import make
from _run import Run, arguments
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset

HOURS = 64


def read(path):
    with np.load(path) as file:
        return file["field"]


class Hours(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths) * (HOURS - 1)

    def __getitem__(self, index):
        week, hour = divmod(index, HOURS - 1)
        now, following = read(self.paths[week])[hour : hour + 2]
        return torch.from_numpy(now[None]), torch.from_numpy(following[None])


def weeks(folder, count):
    def write(path, seed):
        field = np.random.default_rng(seed).normal(size=(HOURS, 48, 96)).cumsum(0).cumsum(2)
        np.savez_compressed(path, field=field.astype(np.float32))

    return [
        make(folder / f"weather/week{i:03d}.npz", lambda path, i=i: write(path, i))
        for i in range(count)
    ]


def main():
    options = arguments(__doc__, epochs=8, items=504)
    torch.set_num_threads(1)
    dataset = Hours(weeks(options.data, max(1, options.items // (HOURS - 1))))
    loader = DataLoader(
        dataset, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for now, following in loader:
            loss = mse_loss(model(now), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(now, loss)
    run.done(model)


if __name__ == "__main__":
    main()
