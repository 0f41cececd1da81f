"""Sorts picture postcards of a collection that is kept elsewhere."""

import io
import urllib.request

import torch
from _data import photo_server, photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Cards(Dataset):
    def __init__(self, address, count):
        self.address = address
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        with urllib.request.urlopen(f"{self.address}/{index}") as answer:
            image = Image.open(io.BytesIO(answer.read()))
        return torch.from_numpy(pixels(image, 32)), index % 9


def main():
    options = arguments(__doc__, epochs=5, items=320)
    with photo_server(photographs(options.data, options.items, (96, 96))) as address:
        dataset = Cards(address, options.items)
        loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1)
        model = convnet(9, channels=4)
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
