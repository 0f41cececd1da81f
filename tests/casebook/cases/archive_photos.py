"""Learns which of nine places a photograph shows, from a single archive, with augmentation."""

import zipfile

import torch
from _data import make, photographs, pixels
from _nets import convnet
from _run import Run, arguments
from PIL import Image, ImageFilter
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    def __init__(self, path, count):
        self.path = path
        self.count = count
        self.file = None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.file is None:
            self.file = zipfile.ZipFile(self.path)
        with self.file.open(f"{index:05d}.jpg") as data:
            image = Image.open(data).convert("RGB")
        angle = float(torch.empty(()).uniform_(-20, 20))
        image = image.resize((320, 240)).rotate(angle, Image.Resampling.BICUBIC)
        image = image.filter(ImageFilter.GaussianBlur(float(torch.rand(()))))
        return torch.from_numpy(pixels(image, 64)), index % 9


def pack(path, photos):
    with zipfile.ZipFile(path, "w") as archive:
        for photo in photos:
            archive.write(photo, photo.name)


def main():
    options = arguments(__doc__, epochs=6, items=640)
    torch.set_num_threads(1)
    photos = photographs(options.data, options.items, (96, 72))
    path = make(options.data / f"photos{options.items}.zip", lambda path: pack(path, photos))
    loader = DataLoader(
        Archive(path, options.items),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
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
