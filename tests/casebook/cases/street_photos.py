"""Learns which of nine places a street photograph shows."""

import torch
from _data import photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return torch.from_numpy(pixels(image, 96)), index % 9


def main():
    options = arguments(__doc__, epochs=7, items=640)
    dataset = Photos(photographs(options.data, options.items, (640, 480)))
    loader = DataLoader(
        dataset, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = convnet(9, channels=24)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(images, loss)
    run.done(model)


if __name__ == "__main__":
    main()
