"""Family 2: data loading and preprocessing."""

from __future__ import annotations

from .entry import Edit, Truth

_MAIN = "def main():\n"

DATA_LOADING = (
    Truth(
        "photo_folder",
        casebook="2-01",
        why="JPEG decoding in the training process, by turns with the training",
        finds=("input_cpu_bound", "input_single_process"),
        never=("input_latency_bound", "small_file_reads"),
        remedies=("loader_workers", "main_threads"),
        fix=(
            Edit(
                "batch_size=16, shuffle=True)",
                "batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)",
            ),
            Edit("    model = convnet(9)\n", "    torch.set_num_threads(1)\n    model = convnet(9)\n"),
        ),
    ),
    Truth(
        "click_rows",
        casebook="2-02",
        why="rows of tensors in memory are fetched one by one and stacked again",
        finds=("per_row_fetch",),
        never=("input_latency_bound",),
        remedies=("loader_batch_fetch",),
        fix=(
            Edit(
                "import DataLoader, TensorDataset",
                "import BatchSampler, DataLoader, RandomSampler, TensorDataset",
            ),
            Edit(
                "    loader = DataLoader(TensorDataset(visitors, clicks), batch_size=256, shuffle=True)\n",
                "    data = TensorDataset(visitors, clicks)\n"
                "    order = BatchSampler(RandomSampler(data), 256, drop_last=False)\n"
                "    loader = DataLoader(data, batch_size=None, sampler=order)\n",
            ),
        ),
        quick=("--epochs", "1", "--items", "5000"),
    ),
    Truth(
        "price_rows",
        casebook="2-02",
        why="the same behind random_split, with workers that only add transport",
        finds=("per_row_fetch",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("loader_batch_fetch", "loader_workers"),
        fix=(
            Edit(
                "import DataLoader, TensorDataset, random_split",
                "import BatchSampler, DataLoader, RandomSampler, TensorDataset, random_split",
            ),
            Edit(
                "        train, batch_size=512, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True\n",
                "        TensorDataset(*train.dataset[train.indices]),\n"
                "        batch_size=None,\n"
                "        sampler=BatchSampler(RandomSampler(train), 512, drop_last=True),\n",
            ),
        ),
        quick=("--epochs", "1", "--items", "6000"),
    ),
    Truth(
        "handwriting",
        casebook="2-03",
        why="a small data set is prepared anew in every epoch, in the training process",
        finds=("input_cpu_bound", "input_single_process", "repeated_decode"),
        never=("input_latency_bound",),
        remedies=("loader_cache", "loader_workers"),
        fix=(Edit("DataLoader(Digits(options.items),", "DataLoader(list(Digits(options.items)),"),),
    ),
    Truth(
        "article_tags",
        casebook="2-04",
        why="the collate function splits long texts into words, in the training process",
        finds=("collate_bound", "input_cpu_bound"),
        never=("input_latency_bound", "per_row_fetch"),
        remedies=("loader_workers", "main_threads"),
        fix=(
            Edit("torch.tensor(encode(text)) for text, _", "torch.tensor(text) for text, _"),
            Edit('(text, text.count("self") % 10)', '(encode(text), text.count("self") % 10)'),
        ),
        fix_is_live=False,
    ),
    Truth(
        "spoken_digits",
        casebook="2-06",
        why="short epochs, and workers that are started anew for each",
        finds=("worker_restart",),
        never=("input_latency_bound", "small_file_reads"),
        remedies=("loader_persistent",),
        fix=(Edit("num_workers=2)", "num_workers=2, persistent_workers=True)"),),
        quick=("--epochs", "4", "--items", "32"),
    ),
    Truth(
        "pose_annotations",
        casebook="2-07, 2-08",
        why="spawned workers import everything and receive a large list anew in each epoch",
        finds=("worker_restart",),
        never=("input_latency_bound",),
        remedies=("loader_persistent",),
        fix=(
            Edit(
                'num_workers=2, multiprocessing_context="spawn"\n',
                'num_workers=2, multiprocessing_context="spawn",\n        persistent_workers=True,\n',
            ),
        ),
        quick=("--epochs", "2", "--items", "64"),
    ),
    Truth(
        "sensor_windows",
        casebook="2-12",
        why="the collate function turns a list of arrays into a tensor number by number",
        finds=("collate_bound",),
        never=("input_latency_bound", "per_row_fetch"),
        remedies=("loader_workers", "main_threads"),
        fix=(
            Edit(
                "torch.tensor([window for window, _ in samples])",
                "torch.from_numpy(np.stack([window for window, _ in samples]))",
            ),
        ),
        fix_is_live=False,
        quick=("--epochs", "1", "--items", "640"),
    ),
    Truth(
        "detector_hits",
        casebook="2-12",
        why="default collation of many small arrays in each item",
        finds=("collate_bound",),
        never=("input_latency_bound",),
        remedies=("loader_batch_fetch", "loader_workers"),
        fix=(
            Edit(
                _MAIN,
                "def stacked(events):\n"
                "    names = events[0]\n"
                "    return {n: torch.from_numpy(np.stack([e[n] for e in events])) for n in names}\n\n\n" + _MAIN,
            ),
            Edit("batch_size=128, shuffle=True)", "batch_size=128, shuffle=True, collate_fn=stacked)"),
        ),
        quick=("--epochs", "1", "--items", "1280"),
    ),
    Truth(
        "remote_photos",
        casebook="2-13",
        why="each item waits for a server, one after the other, in the training process",
        finds=("input_latency_bound",),
        never=("too_few_cpus", "input_cpu_bound"),
        remedies=("loader_workers", "loader_prefetch"),
        fix=(
            Edit(
                "batch_size=8, shuffle=True)",
                "batch_size=8, shuffle=True, num_workers=8, persistent_workers=True)",
            ),
        ),
    ),
    Truth(
        "wearable_files",
        casebook="2-14",
        why="each item is put together from dozens of small files",
        finds=("small_file_reads",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("loader_cache", "loader_materialise"),
        fix=(
            Edit(
                "Sessions(list(sessions(options.data, options.items)))",
                "list(Sessions(list(sessions(options.data, options.items))))",
            ),
        ),
    ),
    Truth(
        "weather_blocks",
        casebook="2-15",
        why="each item unpacks a file of 64 to use two records of it",
        finds=("storage_read_amplification", "repeated_decode"),
        never=("input_latency_bound", "small_file_reads"),
        remedies=("loader_cache", "loader_materialise"),
        fix=(
            Edit("import numpy as np\n", "import functools\n\nimport numpy as np\n"),
            Edit("def read(path):\n", "@functools.cache\ndef read(path):\n"),
        ),
        quick=("--epochs", "2", "--items", "63"),
    ),
    Truth(
        "clips",
        casebook="2-17",
        why="all frames of a clip are decoded and one in eight is used",
        finds=("storage_read_amplification", "input_cpu_bound", "too_few_cpus"),
        never=("input_latency_bound", "worker_restart"),
        remedies=("loader_cache", "loader_materialise"),
        fix=(
            Edit(
                "            image = Image.open(io.BytesIO(file.read(struct.unpack(\"<I\", size)[0])))\n"
                "            images.append(pixels(image, 64))\n",
                "            images.append(file.read(struct.unpack(\"<I\", size)[0]))\n",
            ),
            Edit(
                "        clip = np.stack(frames(self.paths[index]))\n"
                "        return torch.from_numpy(clip[:: FRAMES // 4].reshape(-1, 64, 64)), index % 9\n",
                "        used = frames(self.paths[index])[:: FRAMES // 4]\n"
                "        clip = np.stack([pixels(Image.open(io.BytesIO(data)), 64) for data in used])\n"
                "        return torch.from_numpy(clip.reshape(-1, 64, 64)), index % 9\n",
            ),
        ),
        fix_is_live=False,
        quick=("--epochs", "2", "--items", "16"),
    ),
    Truth(
        "citations",
        casebook="2-19",
        why="neighbours are drawn and gathered in Python, in the training process",
        finds=("input_cpu_bound", "input_single_process"),
        never=("input_latency_bound", "per_row_fetch"),
        remedies=("loader_workers", "main_threads"),
        fix=(
            Edit(
                "batch_size=64, shuffle=True)",
                "batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)",
            ),
            Edit("    run = Run()\n", "    torch.set_num_threads(1)\n    run = Run()\n"),
        ),
        quick=("--epochs", "1", "--items", "640"),
    ),
    Truth(
        "remote_pages",
        casebook="2-20",
        why="one worker, and each item waits for a server",
        finds=("input_latency_bound",),
        never=("too_few_cpus", "input_cpu_bound"),
        remedies=("loader_workers", "loader_prefetch"),
        fix=(Edit("num_workers=1)", "num_workers=8, persistent_workers=True)"),),
    ),
    Truth(
        "big_slides",
        casebook="2-21",
        why="the same few large pictures are decoded again for each patch",
        finds=("repeated_decode", "storage_read_amplification"),
        never=("input_latency_bound", "small_file_reads"),
        remedies=("loader_cache", "loader_materialise"),
        fix=(
            Edit("import torch\nfrom _data", "import functools\n\nimport torch\nfrom _data"),
            Edit("def scan(path):\n", "@functools.cache\ndef scan(path):\n"),
        ),
        quick=("--epochs", "1", "--items", "16"),
    ),
    Truth(
        "volumes",
        casebook="2-05",
        why="workers hand over megabytes of arrays as pickles through a pipe",
        finds=("transport_bound",),
        never=("input_latency_bound", "worker_restart", "storage_read_amplification"),
        fix=(
            Edit(
                "def together(samples):\n    return samples\n",
                "def together(samples):\n"
                "    return [dict(s, volume=torch.from_numpy(s[\"volume\"])) for s in samples]\n",
            ),
            Edit('torch.from_numpy(sample["volume"]) for', 'sample["volume"] for'),
        ),
        fix_is_live=False,
        quick=("--epochs", "1", "--items", "32"),
    ),
    Truth(
        "scanned_pages",
        casebook="R22",
        why="one item in a hundred takes as long as the others together; the queue is short",
        finds=("input_variance",),
        never=("input_latency_bound", "worker_restart"),
        remedies=("loader_prefetch", "loader_workers"),
        fix=(Edit("prefetch_factor=1,", "prefetch_factor=8,"),),
        quick=("--epochs", "1", "--items", "120"),
    ),
)
