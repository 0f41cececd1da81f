"""Learns to tell tissue from patches of a few scanned slides."""

import torch
from _data import photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

SLIDES = 6


def scan(path):
    return Image.open(path).convert("RGB")


class Patches(Dataset):
    def __init__(self, paths, count):
        self.paths = paths
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        slide, place = index % SLIDES, index // SLIDES
        left, top = place * 97 % 1700, place * 61 % 1200
        patch = scan(self.paths[slide]).crop((left, top, left + 64, top + 64))
        return torch.from_numpy(pixels(patch, 64)), slide


def main():
    options = arguments(__doc__, epochs=9, items=192)
    torch.set_num_threads(1)
    slides = photographs(options.data, SLIDES, (1800, 1350))
    dataset = Patches(slides, options.items)
    loader = DataLoader(
        dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True
    )
    model = convnet(SLIDES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for patches, labels in loader:
            loss = cross_entropy(model(patches), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(patches, loss)
    run.done(model)


if __name__ == "__main__":
    main()
