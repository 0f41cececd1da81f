"""Learns joint positions from crops of photographs and a list of annotated people."""

import random

import torch
from _data import photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, Dataset


class People(Dataset):
    def __init__(self, paths, annotations):
        self.paths = paths
        self.annotations = annotations

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        person = self.annotations[index]
        with Image.open(self.paths[index]) as image:
            picture = torch.from_numpy(pixels(image, 64))
        return picture, torch.tensor([[joint["x"], joint["y"]] for joint in person["joints"]])


def annotate(count, seed):
    chance = random.Random(seed)
    return [
        {
            "id": number,
            "joints": [{"x": chance.random(), "y": chance.random()} for _ in range(17)],
        }
        for number in range(count)
    ]


def main():
    options = arguments(__doc__, epochs=6, items=320)
    torch.set_num_threads(1)
    people = annotate(options.items * 100, options.seed)
    dataset = People(photographs(options.data, options.items, (160, 120)), people)
    loader = DataLoader(
        dataset, batch_size=16, shuffle=True, num_workers=2, multiprocessing_context="spawn"
    )
    model = convnet(34)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for pictures, joints in loader:
            loss = mse_loss(model(pictures), joints.flatten(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(pictures, loss)
    run.done(model)


if __name__ == "__main__":
    main()
