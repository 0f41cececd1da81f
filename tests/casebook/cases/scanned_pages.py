"""Sorts the pages of a collection of snapshots and posters."""

import torch
from _data import photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Pages(Dataset):
    def __init__(self, snapshots, posters):
        self.paths = snapshots
        self.paths[50::100] = posters

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as image:
            return torch.from_numpy(pixels(image, 128)), index % 9


def main():
    options = arguments(__doc__, epochs=4, items=1000)
    torch.set_num_threads(1)
    snapshots = photographs(options.data, options.items, (160, 120))
    posters = photographs(options.data, len(snapshots[50::100]), (4000, 3000))
    loader = DataLoader(
        Pages(snapshots, posters),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        prefetch_factor=1,
        persistent_workers=True,
    )
    model = convnet(9, channels=24)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for pages, labels in loader:
            loss = cross_entropy(model(pages), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pages, loss)
    run.done(model)


if __name__ == "__main__":
    main()
