"""Recognises activities in the files that the sensors of a wearable write."""

import numpy as np
import torch
from _data import make
from _nets import wavenet
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

SENSORS = 48


class Sessions(Dataset):
    def __init__(self, folders):
        self.folders = folders

    def __len__(self):
        return len(self.folders)

    def __getitem__(self, index):
        folder = self.folders[index]
        signals = [np.load(folder / f"sensor{number:02d}.npy") for number in range(SENSORS)]
        return torch.from_numpy(np.stack(signals)), index % 6


def sessions(folder, count):
    for session in range(count):
        draw = np.random.default_rng(session)
        place = folder / f"wearable/{session:05d}"
        for number in range(SENSORS):
            signal = draw.normal(size=64).astype(np.float32)
            make(place / f"sensor{number:02d}.npy", lambda path, s=signal: np.save(path, s))
        yield place


def main():
    options = arguments(__doc__, epochs=40, items=256)
    torch.set_num_threads(1)
    dataset = Sessions(list(sessions(options.data, options.items)))
    loader = DataLoader(
        dataset, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = wavenet(6, channels=SENSORS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for signals, activities in loader:
            loss = cross_entropy(model(signals), activities)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(signals, loss)
    run.done(model)


if __name__ == "__main__":
    main()
