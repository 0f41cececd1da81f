"""Names flowers on photographs."""

import os

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
            return torch.from_numpy(pixels(image, 64)), index % 9


def start(worker):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main():
    options = arguments(__doc__, epochs=10, items=640)
    torch.set_num_threads(1)
    dataset = Photos(photographs(options.data, options.items, (640, 480)))
    loader = DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=start,
    )
    model = convnet(9, channels=8)
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
