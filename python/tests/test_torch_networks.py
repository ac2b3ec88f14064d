"""The paper's networks: weights both ways, the same outputs, training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import sren  # noqa: E402
import sren.torch as st  # noqa: E402


def tensor(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2)


@pytest.fixture(scope="module")
def seen() -> np.ndarray:
    """Digits of the test set SRT, cut to what the preprocessing puts on its canvas again."""
    return sren.datasets.srt_mnist("upright", 12)[0][:, 14:42, 14:42]


def log_odds(probabilities: torch.Tensor) -> torch.Tensor:
    logarithm = probabilities.log()
    return logarithm - logarithm.mean(1, keepdim=True)


@pytest.mark.parametrize("backend", ["rust", "torch"])
def test_a_run_of_the_command_gives_the_same_outputs(
    resnet_run: Path, seen: np.ndarray, backend: str
) -> None:
    model, network = sren.load(resnet_run), st.load(resnet_run, backend)
    assert not network.training
    images = tensor(model.preprocess(seen))
    with torch.no_grad():
        logits = network(images)
    expected = torch.from_numpy(model.predict(seen).probabilities)
    torch.testing.assert_close(logits.softmax(1), expected, atol=1e-4, rtol=1e-4)
    # Every layer, relative to its largest value.
    with torch.no_grad():
        layers = network.feature_maps(images)
    features = model.features(seen)
    assert list(layers) == list(features) == ["stem", *(f"blocks.{i}" for i in range(8))]
    for name, found in layers.items():
        values = features[name].values
        error = np.abs(found.permute(0, 2, 3, 1).numpy() - values).max()
        assert error < 1e-4 * np.abs(values).max(), (name, error)


def test_weights_go_back_to_a_run(resnet_run: Path, seen: np.ndarray, tmp_path: Path) -> None:
    network = st.load(resnet_run)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.01 * torch.randn_like(parameter))
    st.save(network, tmp_path / "new")
    model = sren.load(tmp_path / "new")
    with torch.no_grad():
        logits = network(tensor(model.preprocess(seen)))
    expected = torch.from_numpy(model.predict(seen).probabilities)
    torch.testing.assert_close(logits.softmax(1), expected, atol=1e-4, rtol=1e-4)
    # There and back, bit for bit.
    again = st.load(tmp_path / "new")
    for name, value in network.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    st.save(network, tmp_path / "like", like=resnet_run)
    st.save(again, tmp_path / "like")
    weights = st.to_weights(network)
    assert weights["backbone.stem.weight"].shape == (7, 7, 1, 64)
    assert weights["head.linear.weight"].shape == (96, 10)
    other = st.network("blocks", 1, 10)
    with pytest.raises(ValueError, match="expected a run with the same network"):
        st.save(other, tmp_path / "like")
    del weights["head.linear.bias"]
    with pytest.raises(ValueError, match="head.linear.bias"):
        st.from_weights(network, weights)
    with torch.no_grad():
        network.head.linear.bias[0] = torch.nan
    with pytest.raises(ValueError, match="expected finite weights"):
        st.save(network, tmp_path / "new")
    with pytest.raises(ValueError, match="expected a residual network"):
        st.load("mnist-sren")


@pytest.mark.parametrize(
    ("arch", "channels", "parameters"),
    [("resnet18", 1, 11_957_738), ("resnet16", 3, None), ("wrn16-8", 3, None), ("blocks", 1, 81_514)],
)
@pytest.mark.parametrize("group", ["sren", "cnn"])
def test_all_networks_have_the_outputs_of_the_library(
    arch: str, channels: int, parameters: int | None, group: str, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    network = st.network(arch, channels, 10, group).eval()
    count = sum(parameter.numel() for parameter in network.parameters())
    if parameters is not None and group == "sren":
        assert count == parameters
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, st.MaskedBatchNorm):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
                part.weight.uniform_(0.5, 1.5)
                part.bias.normal_(0, 0.1)
    images = torch.rand(2, channels, 24, 24)
    with torch.no_grad():
        logits, scores = network(images), network.scores(images)
    rows = 24 if group == "sren" and arch != "blocks" else 1
    assert logits.shape == (2, 10) and scores.shape == (2, rows, 10)
    if channels != 1:
        # Runs on digits have one channel: the library reads these from a run on other images.
        return
    st.save(network, tmp_path / "run")
    model = sren.load(tmp_path / "run")
    digits = sren.datasets.mnist()[0][:4, :, :, None]
    with torch.no_grad():
        logits = network(tensor(model.preprocess(digits)))
    expected = torch.from_numpy(model.predict(digits).probabilities)
    torch.testing.assert_close(logits.softmax(1), expected, atol=1e-4, rtol=1e-4)
    # Logits but for a constant, where single precision holds the probabilities.
    assert expected.min() > 1e-6
    centred = logits - logits.mean(1, keepdim=True)
    torch.testing.assert_close(centred, log_odds(expected), atol=1e-4, rtol=1e-4)


def test_photographs(tmp_path: Path) -> None:
    """ResNet-16 and WRN-16-8 on images of one's own: from the command's runs to torch."""
    from PIL import Image

    random = np.random.default_rng(1)
    for name in ("a", "b"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for index in range(8):
            values = (random.random((5, 5, 3)) * 255).astype(np.uint8)
            image = Image.fromarray(values).resize((16, 16), Image.Resampling.BICUBIC)
            image.save(tmp_path / f"data/{name}/{index}.png")
    images = [np.asarray(Image.open(path)) for path in sorted((tmp_path / "data/a").iterdir())]
    for arch in ("resnet16", "wrn16-8"):
        run = sren.train(
            tmp_path / "data", arch=arch, size=16, epochs=1, batch=4, images=8,
            out=tmp_path / arch, progress=False,
        )
        model, network = run.load(), st.load(run.path)
        with torch.no_grad():
            probabilities = network(tensor(model.preprocess(images))).softmax(1)
        expected = torch.from_numpy(model.predict(images).probabilities)
        torch.testing.assert_close(probabilities, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("arch", ["resnet18", "blocks"])
def test_logits_are_invariant_to_right_angles(arch: str) -> None:
    torch.manual_seed(1)
    network = st.network(arch, 1, 10).eval()
    network.head.upright_prior = 0.0
    images = tensor(sren.datasets.srt_mnist("srt", 3)[0])
    with torch.no_grad():
        logits = network(images)
        rotated = network(torch.rot90(images, 1, (2, 3)).contiguous())
    spread = logits.std(1).max()
    assert spread > 1e-3 and (logits - rotated).abs().max() < 0.02 * spread


def test_it_learns_by_both_paths() -> None:
    images, labels = sren.datasets.srt_mnist("upright", 12, split="train")
    x, y = tensor(images), torch.from_numpy(labels)
    for backend in ("rust", "torch"):
        torch.manual_seed(1)
        network = st.network("blocks", 1, 10, backend=backend)
        optimiser = torch.optim.AdamW(network.parameters(), lr=0.01)
        losses = []
        for _ in range(6):
            optimiser.zero_grad()
            loss = network.loss(x, y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.6 * losses[0], losses


def test_the_orientation_head_learns_the_orientation() -> None:
    torch.manual_seed(1)
    config = dict(st.resnet18().config)
    config["backbone"] = dict(config["backbone"], stem_channels=4, stages=[])
    network = st.SimResNet(config)
    images, labels = sren.datasets.srt_mnist("upright", 4)
    x, y = tensor(images), torch.from_numpy(labels)
    upright = network.loss(x, y)
    network.zero_grad()
    upright.backward()
    assert all(parameter.grad is not None for parameter in network.parameters())
    # A label rotated by two steps of 24 is one of two rows earlier.
    from sren.torch.resnet import orientation_loss

    scores = torch.zeros(1, 24, 3)
    scores[0, 22, 1] = 8
    there = orientation_loss(scores, torch.tensor([1]), torch.tensor([torch.pi / 6]))
    elsewhere = orientation_loss(scores, torch.tensor([1]), torch.tensor([-torch.pi / 6]))
    assert there < elsewhere


def test_compile_and_autocast_take_a_whole_network() -> None:
    torch.manual_seed(1)
    network = st.network("blocks", 1, 10).eval()
    images = tensor(sren.datasets.srt_mnist("r", 2)[0])
    with torch.no_grad():
        expected = network(images)
        compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(images), expected, atol=1e-5, rtol=1e-4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(network(images), expected)
