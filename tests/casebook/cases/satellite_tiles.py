"""Tells land use from tiles of satellite pictures."""

import numpy as np
import torch
from _data import make
from _nets import convnet
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, paths):
        self.paths = paths
        across = np.fft.fftfreq(256)
        self.haze = np.exp(-20 * (across[:, None] ** 2 + across**2))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        tile = np.load(self.paths[index]).astype(np.float32)
        large = np.kron(tile, np.ones((8, 8), np.float32))
        clear = np.fft.ifft2(np.fft.fft2(large) * (1 - self.haze)).real
        return torch.from_numpy(clear[None, ::4, ::4].astype(np.float32)), index % 4


def tiles(folder, count):
    def write(path, index):
        np.save(path, np.random.default_rng(index).integers(0, 255, (32, 32), np.uint8))

    return [
        make(folder / f"tiles/{i:05d}.npy", lambda path, i=i: write(path, i)) for i in range(count)
    ]


def main():
    options = arguments(__doc__, epochs=10, items=640)
    torch.set_num_threads(1)
    loader = DataLoader(
        Tiles(tiles(options.data, options.items)),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    model = convnet(4, channels=8, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for pictures, labels in loader:
            loss = cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pictures, loss)
    run.done(model)


if __name__ == "__main__":
    main()
