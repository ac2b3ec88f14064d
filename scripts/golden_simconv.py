"""Golden files for the similarity convolution, made with torchvision's deform_conv2d.

    pip install torch torchvision numpy
    python scripts/golden_simconv.py            # writes crates/sren-kernels/tests/golden/

Made with torch 2.15 and torchvision 0.29.2 (the exact versions stand in manifest.json); the tests
read the files and need neither. Everything is computed in f64 from f32 inputs and stored as f32,
little-endian, channels last, one .bin per case, arrays concatenated in the order of the
manifest.

The similarity convolution of a pose (scale, angle) equals a deformable convolution whose sampling
locations are  p + kappa scale R(angle) t  instead of  p + t. Several weighted poses are the weighted
mean of several deformable convolutions; the relative-pose kernel is five of them, by
cos d = cos(y) cos(x) + sin(y) sin(x) and sin d = sin(y) cos(x) - cos(y) sin(x).
"""

import json
import math
import pathlib

import numpy as np
import torch
import torchvision
from torchvision.ops import deform_conv2d

SEED = 20230300326
OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/sren-kernels/tests/golden"

# name, batch, height, width, c_in, c_out, k, stride, kappa, poses, relative_pose
CASES = [
    ("k3_s1", 2, 8, 9, 5, 7, 3, 1, 1.0, 1, False),
    ("k3_s2", 2, 10, 8, 4, 6, 3, 2, 0.8, 1, False),
    ("k3_s1_wide", 1, 6, 6, 33, 40, 3, 1, 1.2, 1, False),
    ("k5_s1", 2, 7, 7, 3, 8, 5, 1, 0.7, 1, False),
    ("k5_s2", 1, 9, 11, 8, 3, 5, 2, 1.0, 1, False),
    ("k7_s1", 2, 8, 8, 1, 5, 7, 1, 0.6, 1, False),
    ("k7_s2", 2, 12, 12, 2, 9, 7, 2, 0.6, 1, False),
    ("k1_s2", 2, 8, 8, 6, 5, 1, 2, 1.0, 1, False),
    ("k3_s1_two_poses", 2, 8, 8, 5, 6, 3, 1, 1.0, 2, False),
    ("k5_s2_three_poses", 1, 10, 10, 4, 5, 5, 2, 0.9, 3, False),
    ("k3_s1_relative_pose", 2, 8, 8, 4, 6, 3, 1, 1.0, 1, True),
    ("k5_s1_relative_pose", 1, 7, 9, 3, 5, 5, 1, 0.8, 1, True),
]


def as_f32(array):
    """The f64 values of what is stored in f32."""
    return array.astype(np.float32).astype(np.float64)


def cell_centres(size, stride):
    """Grid::cell_centred of the pixels of one axis."""
    coarse = -(-size // stride)
    first = 0.5 * ((size - 1) - stride * (coarse - 1))
    return first + stride * np.arange(coarse)


def offsets(scale, angle, height, width, k, stride, kappa):
    """deform_conv2d's offsets [n, 2 k k, oh, ow] for poses [n, oh, ow]."""
    px, py = cell_centres(width, stride), cell_centres(height, stride)
    n, oh, ow = scale.shape
    out = np.zeros((n, k * k, 2, oh, ow))
    base_x, base_y = stride * np.arange(ow), stride * np.arange(oh)
    for ky in range(k):
        for kx in range(k):
            tx, ty = kx - k // 2, ky - k // 2
            x = px + kappa * scale * (np.cos(angle) * tx - np.sin(angle) * ty)
            y = py[:, None] + kappa * scale * (np.sin(angle) * tx + np.cos(angle) * ty)
            out[:, ky * k + kx, 0] = y - (base_y[:, None] + ty)
            out[:, ky * k + kx, 1] = x - (base_x + tx)
    return torch.from_numpy(out.reshape(n, 2 * k * k, oh, ow))


def make(rng, name, n, h, w, c_in, c_out, k, stride, kappa, poses, relative_pose):
    oh, ow = -(-h // stride), -(-w // stride)
    kappa = float(np.float32(kappa))
    blocks = 3 if relative_pose else 1
    scale = as_f32(np.exp(rng.uniform(math.log(0.5), math.log(2.5), (n, oh, ow, poses))))
    angle = as_f32(rng.uniform(-math.pi, math.pi, (n, oh, ow, poses)))
    share = rng.uniform(0.1, 1.0, (n, oh, ow, poses))
    share = as_f32(share / share.sum(-1, keepdims=True))
    x = as_f32(rng.standard_normal((n, h, w, c_in)))
    weight = as_f32(rng.standard_normal((k, k, blocks * c_in, c_out)) / math.sqrt(k * k * c_in))
    bias = as_f32(rng.standard_normal(c_out))
    grad = as_f32(rng.standard_normal((n, oh, ow, c_out)))

    tx, tw, tb = (torch.from_numpy(a).requires_grad_() for a in (x, weight, bias))
    planes = tx.permute(0, 3, 1, 2)
    kernels = tw.permute(3, 2, 0, 1)

    def sample(planes, kernels, pose):
        shift = offsets(scale[..., pose], angle[..., pose], h, w, k, stride, kappa)
        return deform_conv2d(planes, shift, kernels, stride=stride, padding=k // 2)

    if relative_pose:
        assert stride == 1 and poses == 1
        gamma = torch.from_numpy(angle[..., 0])[:, None]
        cos, sin = gamma.cos(), gamma.sin()
        phi0, phic, phis = kernels.split(c_in, dim=1)
        out = sample(planes, phi0, 0)
        out = out + cos * (sample(planes * cos, phic, 0) + sample(planes * sin, phis, 0))
        out = out + sin * (sample(planes * sin, phic, 0) - sample(planes * cos, phis, 0))
    else:
        out = sum(
            torch.from_numpy(share[..., j])[:, None] * sample(planes, kernels, j)
            for j in range(poses)
        )
    out = (out + tb[:, None, None]).permute(0, 2, 3, 1)
    out.backward(torch.from_numpy(grad))

    arrays = {
        "scale": scale,
        "angle": angle,
        "pose_weight": share,
        "input": x,
        "weight": weight,
        "bias": bias,
        "grad_output": grad,
        "output": out.detach().numpy(),
        "grad_input": tx.grad.numpy(),
        "grad_weight": tw.grad.numpy(),
        "grad_bias": tb.grad.numpy(),
    }
    raw = b"".join(np.ascontiguousarray(a, dtype="<f4").tobytes() for a in arrays.values())
    (OUT / f"{name}.bin").write_bytes(raw)
    return {
        "name": name,
        "batch": n,
        "height": h,
        "width": w,
        "c_in": c_in,
        "c_out": c_out,
        "kernel_size": k,
        "stride": stride,
        "kappa": kappa,
        "poses": poses,
        "relative_pose": relative_pose,
        "arrays": [[key, a.size] for key, a in arrays.items()],
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    manifest = {
        "made_by": "scripts/golden_simconv.py",
        "reference": "torchvision.ops.deform_conv2d, f64",
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "numpy": np.__version__,
        "seed": SEED,
        "cases": [make(rng, *case) for case in CASES],
    }
    cases = manifest.pop("cases")
    head = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in manifest.items())
    rows = ",\n".join(f"  {json.dumps(case)}" for case in cases)
    text = f'{{\n{head},\n "cases": [\n{rows}\n ]\n}}\n'
    (OUT / "manifest.json").write_text(text)
    total = sum(f.stat().st_size for f in OUT.iterdir())
    print(f"{len(CASES)} cases, {total / 1000:.0f} kB in {OUT.name}/")


if __name__ == "__main__":
    main()
