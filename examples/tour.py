# %% [markdown]
# # A tour of sren
# The operator, the local frames, the equivariance, and a fine-tuning, in pictures. Open this file as a
# notebook (VS Code, Jupyter with jupytext), or run it: it writes four pictures into the current folder.

# %%
from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch

import sren
import sren.torch

torch.manual_seed(1)
images, labels = sren.datasets.srt_mnist("upright", 64)
digit = images[5]
turned = np.ascontiguousarray(np.rot90(digit, -1))

# %% [markdown]
# ## The operator
# A similarity convolution places its taps in the local frame of each position. Here are the taps of a
# 3x3 kernel at three positions of a digit, and at the same positions of the digit rotated by 90 degrees.

# %%
frames = sren.poses(digit, stride=1)
sure = (frames.confidence[0] > 0.8) & (frames.scale[0] > 4) & (frames.scale[0] < 12)
rows, columns = np.nonzero(sure)
chosen = np.linspace(0, len(rows) - 1, 5).astype(int)[1:4]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.8))
for axis, image in zip(axes, (digit, turned)):
    found = sren.poses(image, stride=1)
    axis.imshow(image[:, :, 0], cmap="gray")
    axis.set_axis_off()
    for row, column in zip(rows[chosen], columns[chosen]):
        if image is turned:
            row, column = column, 55 - row
        scale, angle = found.scale[0, row, column], found.angle[0, row, column]
        ty, tx = np.mgrid[-1:2, -1:2]
        x = column + 0.5 * scale * (np.cos(angle) * tx - np.sin(angle) * ty)
        y = row + 0.5 * scale * (np.sin(angle) * tx + np.cos(angle) * ty)
        (dots,) = axis.plot(x.ravel(), y.ravel(), "o", markersize=4)
        # The first column of the kernel, by which its direction can be seen.
        axis.plot(x[:, 0], y[:, 0], "-", color=dots.get_color())
figure.suptitle("Taps of a similarity convolution: they rotate with the image")
figure.savefig("operator.png", dpi=80)

# %% [markdown]
# ## The frames
# At every position the pose estimator reads a scale and an angle. If the image rotates, so do they.

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 4.5))
small = sren.datasets.srt_mnist("srt", [5])[0][0]
for axis, (name, image) in zip(
    axes, {"upright": digit, "rotated by 90 degrees": turned, "rotated, scaled, moved": small}.items()
):
    found = sren.poses(image, stride=2)
    points = found.grid.points()
    sure = found.confidence[0] > 0.3
    axis.imshow(image[:, :, 0], cmap="gray")
    axis.quiver(
        *points[sure].T,
        found.scale[0][sure] * np.cos(found.angle[0][sure]),
        found.scale[0][sure] * np.sin(found.angle[0][sure]),
        found.scale[0][sure], angles="xy", cmap="viridis", width=0.006,
    )
    axis.set_title(name)
    axis.set_axis_off()
figure.savefig("frames.png", dpi=80)

# %% [markdown]
# ## The equivariance
# Features of the rotated image, rotated back, are those of the image: of an equivariant layer, not of a
# plain convolution with the same weights.

# %%
estimator = sren.torch.PoseEstimator()
layer = sren.torch.SimConv2d(1, 8, 7, stride=2, reference_scale=4.0)


class Equivariant(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return layer(x, estimator(x))


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv2d(x, layer.weight, layer.bias, padding=3)


figure, axes = plt.subplots(2, 3, figsize=(10, 7))
for row, (name, module) in zip(axes, {"SimConv2d": Equivariant(), "Conv2d": Plain()}.items()):
    error = sren.equivariance_error(module, images[:8])
    print(f"equivariance error of {name} under right angles: {error:.1e}")
    with torch.no_grad():
        upright, rotated = (
            module(torch.from_numpy(image).permute(2, 0, 1)[None])[0, 0].numpy()
            for image in (digit, turned)
        )
    pictures = {"features": upright, "of the rotated image": rotated, "rotated back": np.rot90(rotated)}
    for axis, (title, picture) in zip(row, pictures.items()):
        axis.imshow(picture, cmap="RdBu", vmin=-np.abs(upright).max(), vmax=np.abs(upright).max())
        axis.set_title(f"{name}: {title}" if title == "features" else title)
        axis.set_axis_off()
figure.savefig("equivariance.png", dpi=80)

# %% [markdown]
# ## A fine-tuning
# A small network trained on upright digits for a moment, in Rust, then continued in torch on other upright
# digits with the weights taken over. Its accuracy on rotated digits is near that on upright ones, although
# it never saw one.

# %%
run = sren.train(preset="quick", images=1500, epochs=3, out="tour-run", progress=False)
network = sren.torch.load(run.path)
x, y = sren.datasets.srt_mnist("upright", range(2000, 2500), split="train")
x, y = torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(y)
tests = {name: sren.datasets.srt_mnist(name, 150) for name in ("upright", "r")}


def accuracies() -> dict[str, float]:
    network.eval()
    found = {}
    with torch.no_grad():
        for name, (test_images, test_labels) in tests.items():
            logits = network(torch.from_numpy(test_images).permute(0, 3, 1, 2))
            right = logits.argmax(1) == torch.from_numpy(test_labels)
            found[name] = 100 * right.float().mean().item()
    return found


history = [accuracies()]
optimiser = torch.optim.AdamW(network.parameters(), lr=5e-4)
for epoch in range(2):
    network.train()
    for indices in torch.randperm(len(x)).split(50):
        optimiser.zero_grad()
        network.loss(x[indices], y[indices]).backward()
        optimiser.step()
    history.append(accuracies())
    print(f"epoch {epoch + 1}, accuracy in per cent:", {name: round(value, 1) for name, value in history[-1].items()})

figure, axis = plt.subplots(figsize=(6, 4))
for name in tests:
    axis.plot([entry[name] for entry in history], "o-", label=name)
axis.set_xlabel("epochs in torch")
axis.set_ylabel("accuracy, per cent")
axis.set_xticks(range(len(history)))
axis.set_ylim(0, 100)
axis.legend()
figure.savefig("fine_tuning.png", dpi=80)

# %%
# And back to a run, for `sren predict` and `sren.load`.
sren.torch.save(network, run.path)
print("predicted:", sren.load(run.path).predict("mnist:0-9").names)
