"""Accuracy against the number of training images: SREN, a plain CNN, and the CNN with full augmentation.

    pip install matplotlib
    python scripts/sample_efficiency.py --out runs/sample-efficiency

Trains every network on every number of images with `sren train` (runs that are complete are kept, one that
was interrupted is resumed), evaluates it with `sren eval`, prints a table and draws sample_efficiency.png.
SREN is `small`, the CNN a ResNet-18 with the original's strides. Small sets are seen more often.
"""

import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parent.parent
# Training images, then epochs of small and of resnet18.
SIZES = {100: (100, 100), 1_000: (40, 40), 10_000: (16, 10), 55_000: (8, 4)}
NETWORKS = {
    "SREN, upright": ["--preset", "default"],
    "CNN, upright": ["--preset", "paper", "--model", "cnn"],
    "CNN, any rotation, scale and shift": ["--preset", "paper", "--model", "cnn", "--augment", "full"],
}
SETS = ["upright", "srt"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/sample-efficiency"))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of training images")
    parser.add_argument("--test-images", type=int, default=10_000, help="test images per set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sren", type=pathlib.Path, default=ROOT / "target/release/sren", help="the command")
    return parser.parse_args()


def trained(options, name, size):
    """The folder of a complete run."""
    small, resnet18 = SIZES[size]
    epochs = small if name.startswith("SREN") else resnet18
    folder = options.out / f"{name.split(',')[0].lower()}{'-full' if 'full' in NETWORKS[name] else ''}-{size}"
    train = [options.sren, "--quiet", "train", "--threads", str(options.threads), "--test-images", "100"]
    if (folder / "report.html").exists():
        return folder
    if (folder / "config.toml").exists():
        train += ["--resume", folder]
    else:
        train += [*NETWORKS[name], "--images", str(size), "--epochs", str(epochs), "--out", folder]
    subprocess.run(train, check=True, stdout=subprocess.DEVNULL)
    return folder


def accuracies(options, folder):
    """Accuracy in per cent by test set."""
    evaluate = [options.sren, "--quiet", "eval", folder, "--sets", ",".join(SETS), "--json"]
    evaluate += ["--images", str(options.test_images), "--threads", str(options.threads)]
    done = subprocess.run(evaluate, check=True, capture_output=True, text=True)
    return {name: found["accuracy"] for name, found in json.loads(done.stdout)["sets"].items()}


def draw(figures, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(SETS), figsize=(10, 4), sharey=True, layout="constrained")
    for axis, name in zip(axes, SETS):
        for network, by_size in figures.items():
            axis.plot(list(by_size), [found[name] for found in by_size.values()], "o-", label=network)
        axis.set_xscale("log")
        axis.set_xlabel("training images")
        axis.set_title({"upright": "upright", "srt": "scaled, rotated, moved (SRT)"}[name])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy, per cent")
    axes[0].legend()
    figure.savefig(path, dpi=100)


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    figures = {name: {} for name in NETWORKS}
    print(f"{'network':<36}{'images':>8}{'upright':>9}{'srt':>8}")
    for size in (int(size) for size in options.sizes.split(",")):
        for name in NETWORKS:
            found = figures[name][size] = accuracies(options, trained(options, name, size))
            print(f"{name:<36}{size:>8}{found['upright']:>9.2f}{found['srt']:>8.2f}", flush=True)
    draw(figures, options.out / "sample_efficiency.png")


if __name__ == "__main__":
    main()
