"""Learns pitches from short recordings."""

import torch
from _data import sound, tones
from _nets import convnet
from _run import Run, arguments
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.window = torch.hann_window(256)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        wave = torch.tensor(sound(self.paths[index]))
        spectrum = torch.stft(wave, 256, 128, window=self.window, return_complex=True)
        return spectrum.abs().log1p().unsqueeze(0), index % 8


def main():
    options = arguments(__doc__, epochs=150, items=64)
    torch.set_num_threads(1)
    dataset = Recordings(tones(options.data, options.items))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2)
    model = convnet(8, channels=4, inputs=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = Run()
    for _ in range(options.epochs):
        for spectra, labels in loader:
            loss = cross_entropy(model(spectra), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(spectra, loss)
    run.done(model)


if __name__ == "__main__":
    main()
