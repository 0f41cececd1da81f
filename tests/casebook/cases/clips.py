"""Recognises scenes from four frames of each clip."""

import io
import struct

import numpy as np
import torch
from _data import crop, make, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

FRAMES = 32


def write(path, number):
    with open(path, "wb") as file:
        for frame in range(FRAMES):
            data = io.BytesIO()
            crop(number + 9 * frame, (256, 192)).save(data, "JPEG")
            file.write(struct.pack("<I", data.tell()) + data.getvalue())


def frames(path):
    images = []
    with open(path, "rb") as file:
        while size := file.read(4):
            image = Image.open(io.BytesIO(file.read(struct.unpack("<I", size)[0])))
            images.append(pixels(image, 64))
    return images


class Clips(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        clip = np.stack(frames(self.paths[index]))
        return torch.from_numpy(clip[:: FRAMES // 4].reshape(-1, 64, 64)), index % 9


def main():
    options = arguments(__doc__, epochs=20, items=96)
    torch.set_num_threads(1)
    paths = [
        make(options.data / f"clips/{i:04d}.clip", lambda path, i=i: write(path, i))
        for i in range(options.items)
    ]
    loader = DataLoader(
        Clips(paths), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = convnet(9, inputs=12)
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
