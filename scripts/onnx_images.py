"""Images for the scripts around ONNX files, and the preprocessing that `sren predict` does.

Every kind is a function of a number of images, a side and channels: [n, side, side, c] as bytes.
"""

import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
MNIST = ROOT / "crates" / "sren-data" / "mnist"


def digits(count):
    """The first test digits and their labels: [n, 28, 28] as bytes, [n]."""
    import zstandard

    def read(name, header):
        packed = (MNIST / f"{name}.zst").read_bytes()
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        return np.frombuffer(unpacked, np.uint8)[header:]

    images = read("t10k-images-idx3-ubyte", 16).reshape(-1, 28, 28)
    return images[:count], read("t10k-labels-idx1-ubyte", 8)[:count]


def warp(images, angles, scales):
    """[n, h, w, c], each rotated and scaled about its centre, bilinear, zero outside."""
    n, h, w, _ = images.shape
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    x, y = x - (w - 1) / 2, y - (h - 1) / 2
    cos, sin = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    scale = np.asarray(scales, np.float64).reshape(-1, 1, 1)
    at_x = (cos * x + sin * y) / scale + (w - 1) / 2
    at_y = (cos * y - sin * x) / scale + (h - 1) / 2
    left, top = np.floor(at_x).astype(int), np.floor(at_y).astype(int)
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
    number = np.arange(n)[:, None, None]
    out = 0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (1 - abs(at_x - left - dx)) * (1 - abs(at_y - top - dy))
            row, column = np.clip(top + dy, -1, h) + 1, np.clip(left + dx, -1, w) + 1
            out = out + weight[..., None] * padded[number, row, column]
    return out


def kinds(count, side, channels, folder=None):
    """Pairs of a name and images: the subjects in three poses, then what finds faults."""
    random = np.random.default_rng(1)
    if channels == 1:
        name, subjects = "digits", digits(count)[0][..., None]
        offset = (side - 28) // 2
        if offset > 0:
            subjects = np.pad(subjects, ((0, 0), (offset,) * 2, (offset,) * 2, (0, 0)))
        subjects = subjects[:, :side, :side]
    elif folder:
        name, subjects = "photographs", photographs(folder, count, side)
    else:
        name, subjects = "coloured digits", coloured(random, digits(count)[0], side)
    subjects = subjects[np.arange(count) % len(subjects)]
    turn = random.uniform(0, 2 * np.pi, count)
    size = random.uniform(0.5, 1.5, count)
    none = np.zeros(count)
    yield f"{name}, upright", subjects
    yield f"{name}, rotated", to_bytes(warp(subjects, turn, none + 1))
    yield f"{name}, scaled", to_bytes(warp(subjects, none, size))
    shape = (count, side, side, channels)
    yield "half planes", half_planes(random, shape)
    yield "noise", random.integers(0, 256, shape).astype(np.uint8)
    yield "blank", np.broadcast_to(random.integers(0, 256, (count, 1, 1, channels)), shape).astype(np.uint8)
    yield "single dots", dots(random, shape)
    yield "bright borders", borders(random, shape)


def to_bytes(values):
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def photographs(folder, count, side):
    from PIL import Image

    names = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".png", ".jpg", ".jpeg"))
    names = names[:: max(1, len(names) // count)][:count]
    return np.stack([np.asarray(Image.open(p).convert("RGB").resize((side, side))) for p in names])


def coloured(random, grey, side):
    from PIL import Image

    large = np.stack([np.asarray(Image.fromarray(image).resize((side, side))) for image in grey]) / 255
    ink, paper = (random.uniform(0, 255, (len(grey), 1, 1, 3)) for _ in range(2))
    return to_bytes(large[..., None] * ink + (1 - large[..., None]) * paper)


def half_planes(random, shape):
    n, side, _, c = shape
    y, x = np.mgrid[0:side, 0:side] - (side - 1) / 2
    # Right angles among them: there scores are equal to rounding.
    angle = np.where(np.arange(n) % 2, random.uniform(0, 2 * np.pi, n), np.pi / 2 * random.integers(0, 4, n))
    distance = np.round(random.uniform(-side / 4, side / 4, n))
    over = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y > distance[:, None, None]
    colours = random.integers(0, 256, (2, n, 1, 1, c))
    return np.where(over[..., None], colours[0], colours[1]).astype(np.uint8)


def dots(random, shape):
    images = np.zeros(shape, np.uint8)
    n, side, _, c = shape
    at = random.integers(0, side, (2, n))
    images[np.arange(n), at[0], at[1]] = random.integers(1, 256, (n, c))
    return images


def borders(random, shape):
    """One to four sides, one or two pixels wide."""
    images = np.zeros(shape, np.uint8)
    for image in images:
        width = random.integers(1, 3)
        for side in random.choice(4, random.integers(1, 5), replace=False):
            np.rot90(image, side)[:width] = random.integers(128, 256, shape[3])
    return images


def other_sizes(count, side, channels):
    """Smooth images of sizes other than `side`, as a list: smaller, larger, not square."""
    random = np.random.default_rng(2)
    images = []
    for _ in range(count):
        height, width = random.integers(side // 2, 2 * side, 2)
        y, x = np.mgrid[0:height, 0:width] / side
        phase, wave = random.uniform(0, 6, channels), random.uniform(2, 9, (2, channels))
        values = np.sin(x[..., None] * wave[0] + y[..., None] * wave[1] + phase)
        images.append(to_bytes(127.5 + 127.5 * values))
    yield "other sizes", images


def preprocess(images, how):
    """What `sren predict` does to squares of the right side: [n, side, side, c] as bytes -> f32."""
    values = images.astype(np.float32) / np.float32(255)
    side, (height, width) = images.shape[1], how["canvas"]
    mean = np.zeros((len(images), 1, 1, images.shape[3]), np.float32)
    if how["circular_mask"]:
        y, x = np.mgrid[0:side, 0:side] - (side - 1) / 2
        t = np.clip((side / 2 - np.hypot(x, y)) / (side / 16), 0, 1)
        mask = (t * t * (3 - 2 * t)).astype(np.float32)[..., None]
        # Added up one by one, as there: the last bits of the mean reach every pixel.
        total = np.cumsum(mask, dtype=np.float32)[-1]
        terms = (mask * values / total).reshape(len(images), side * side, -1)
        mean = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1].reshape(mean.shape)
        values = mask * (values - mean)
    top, left = (height - side) // 2, (width - side) // 2
    pads = ((0, 0), (top, height - side - top), (left, width - side - left), (0, 0))
    return np.clip(np.pad(values, pads) + mean, 0, 1)
