"""The layers: against other implementations, against themselves under transforms, and as torch users
expect modules to behave."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import sren  # noqa: E402
import sren.torch as st  # noqa: E402
from sren.torch import _gather, _ops  # noqa: E402

CASES = [
    # n, c_in, c_out, h, w, k, stride
    (2, 5, 7, 9, 11, 3, 1),
    (2, 8, 16, 14, 14, 3, 2),
    (2, 3, 8, 20, 20, 7, 4),
    (1, 16, 8, 7, 7, 1, 2),
    (3, 64, 64, 12, 12, 3, 1),
    (1, 4, 4, 1, 6, 3, 1),
]


def poses(n: int, h: int, w: int, stride: int) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (n, -(-h // stride), -(-w // stride))
    scale = torch.exp(torch.empty(shape).uniform_(-0.3, 0.7))
    return scale, torch.empty(shape).uniform_(-math.pi, math.pi)


def case(n: int, c_in: int, c_out: int, h: int, w: int, k: int, stride: int):
    torch.manual_seed(1)
    x = torch.randn(n, c_in, h, w).to(memory_format=torch.channels_last).requires_grad_()
    weight = (torch.randn(c_out, c_in, k, k) / math.sqrt(k * k * c_in)).requires_grad_()
    bias = torch.randn(c_out, requires_grad=True)
    return x, weight, bias, *poses(n, h, w, stride)


def definition(x, weight, bias, scale, angle, stride, kappa):
    """The formula in f64, one sample at a time."""
    x, weight, scale, angle = (t.detach().double().numpy() for t in (x, weight, scale, angle))
    n, c_in, height, width = x.shape
    c_out, _, k, _ = weight.shape
    _, rows, columns = scale.shape
    out = np.zeros((n, c_out, rows, columns)) + bias.detach().double().numpy()[:, None, None]
    for i, row, column in np.ndindex(n, rows, columns):
        s, a = kappa * scale[i, row, column], angle[i, row, column]
        for ky, kx in np.ndindex(k, k):
            ty, tx = ky - k // 2, kx - k // 2
            px = (width - 1) / 2 + stride * (column - (columns - 1) / 2)
            py = (height - 1) / 2 + stride * (row - (rows - 1) / 2)
            px += s * (math.cos(a) * tx - math.sin(a) * ty)
            py += s * (math.sin(a) * tx + math.cos(a) * ty)
            x0, y0 = math.floor(px), math.floor(py)
            sample = np.zeros(c_in)
            for y, x_ in ((y0, x0), (y0, x0 + 1), (y0 + 1, x0), (y0 + 1, x0 + 1)):
                if 0 <= y < height and 0 <= x_ < width:
                    sample += (1 - abs(px - x_)) * (1 - abs(py - y)) * x[i, :, y, x_]
            out[i, :, row, column] += weight[:, :, ky, kx] @ sample
    return out


def relative(a, b) -> float:
    a, b = (torch.as_tensor(t).detach().double() for t in (a, b))
    return ((a - b).abs().max() / b.abs().max()).item()


def rust(x, weight, bias, scale, angle, stride, kappa):
    return _ops.simconv(x, weight, bias, scale, angle, None, None, stride, kappa)


@pytest.mark.parametrize("shape", CASES)
def test_both_paths_follow_the_definition(shape: tuple[int, ...]) -> None:
    *tensors, scale, angle = case(*shape)
    expected = definition(*tensors, scale, angle, shape[-1], 0.8)
    for path in (rust, _gather.simconv):
        assert relative(path(*tensors, scale, angle, shape[-1], 0.8), expected) < 1e-5


@pytest.mark.parametrize("shape", CASES)
def test_both_paths_have_the_same_gradients(shape: tuple[int, ...]) -> None:
    *tensors, scale, angle = case(*shape)
    y = rust(*tensors, scale, angle, shape[-1], 0.8)
    grad = torch.randn_like(y)
    z = _gather.simconv(*tensors, scale, angle, shape[-1], 0.8)
    for ours, theirs in zip(
        torch.autograd.grad(y, tensors, grad), torch.autograd.grad(z, tensors, grad)
    ):
        assert ours.shape == theirs.shape and relative(ours, theirs) < 1e-4


def test_gradients_are_those_of_differences() -> None:
    *tensors, scale, angle = case(1, 3, 4, 5, 5, 3, 1)
    # Linear in each argument: wide differences are exact but for rounding.
    assert torch.autograd.gradcheck(
        lambda x, w, b: rust(x, w, b, scale, angle, 1, 1.0),
        tensors, eps=0.25, atol=1e-3, rtol=1e-3, check_undefined_grad=False,
    )


def test_deform_conv2d_is_the_same_operator() -> None:
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    *tensors, scale, angle = case(2, 8, 16, 14, 14, 3, 1)
    tap = torch.arange(-1.0, 2.0)
    ty, tx = (t.reshape(-1) for t in torch.meshgrid(tap, tap, indexing="ij"))
    cos, sin = (scale * angle.cos())[..., None], (scale * angle.sin())[..., None]
    offset = torch.stack([sin * tx + cos * ty - ty, cos * tx - sin * ty - tx], -1)
    offset = offset.flatten(3).permute(0, 3, 1, 2).contiguous()
    y = rust(*tensors, scale, angle, 1, 1.0)
    z = ops.deform_conv2d(tensors[0], offset, tensors[1], tensors[2], padding=1)
    grad = torch.randn_like(z)
    assert relative(y, z) < 1e-5
    for ours, theirs in zip(
        torch.autograd.grad(y, tensors, grad), torch.autograd.grad(z, tensors, grad)
    ):
        assert relative(ours, theirs) < 1e-5


def test_upright_poses_of_the_reference_scale_give_the_plain_convolution() -> None:
    torch.manual_seed(1)
    images = torch.rand(2, 3, 16, 16)
    layer = st.SimConv2d(3, 5, 3)
    frames = st.PoseEstimator("cnn")(images)
    plain = torch.nn.functional.conv2d(images, layer.weight, layer.bias, padding=1)
    assert relative(layer(images, frames), plain) < 1e-5


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    array, _ = sren.datasets.srt_mnist("srt", 4)
    return torch.from_numpy(array).permute(0, 3, 1, 2)


@pytest.mark.parametrize("backend", ["rust", "torch"])
def test_features_rotate_with_the_image(images: torch.Tensor, backend: str) -> None:
    torch.manual_seed(1)
    estimator = st.PoseEstimator()
    layer = st.SimConv2d(1, 8, 7, stride=2, reference_scale=4.0, backend=backend)
    before = layer(images, estimator(images))
    rotated = torch.rot90(images, 1, (2, 3)).contiguous()
    after = layer(rotated, estimator(rotated))
    assert before.shape == (4, 8, 28, 28) and before.abs().max() > 0.1
    assert relative(after, torch.rot90(before, 1, (2, 3))) < 1e-3

    class Features(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return layer(x, estimator(x))

    array = images.permute(0, 2, 3, 1).numpy()
    assert sren.equivariance_error(Features(), array) < 1e-5


def test_poses_are_those_of_numpy(images: torch.Tensor) -> None:
    frames = st.PoseEstimator(max_scale=10.0)(images)
    expected = sren.poses(images.permute(0, 2, 3, 1).numpy(), stride=4, max_scale=10.0)
    field = frames.field(4)
    np.testing.assert_array_equal(field.scale.numpy(), expected.scale)
    np.testing.assert_array_equal(field.angle.numpy(), expected.angle)
    np.testing.assert_array_equal(field.confidence.numpy(), expected.confidence)
    assert frames.field(4) is field
    rotation, scaling = (st.PoseEstimator(group)(images).field(4) for group in ("so2", "scale"))
    assert (rotation.scale == 1).all() and rotation.angle.abs().max() > 1
    assert (scaling.angle == 0).all() and scaling.scale.max() > 1.5


def test_memory_format_and_strides_do_not_matter(images: torch.Tensor) -> None:
    frames = st.PoseEstimator()(images)
    layer = st.SimConv2d(6, 4, 3)
    x = torch.randn(4, 6, 28, 28)
    expected = layer(x, frames)
    padded = torch.randn(4, 6, 30, 60)
    padded[:, :, 1:-1, ::2][..., :28] = x
    for same in (
        x.to(memory_format=torch.channels_last),
        x.flip(3).flip(3),
        padded[:, :, 1:-1, ::2][..., :28],
    ):
        assert torch.equal(layer(same, frames), expected)
    assert expected.is_contiguous(memory_format=torch.channels_last)


def test_state_dict_and_modes(images: torch.Tensor) -> None:
    torch.manual_seed(1)
    block, other = st.SimBlock(1, 8, stride=2), st.SimBlock(1, 8, stride=2)
    other.load_state_dict(block.state_dict())
    assert block.conv1.weight.shape == (8, 1, 3, 3)
    frames = st.PoseEstimator()(images)
    assert torch.equal(block(images, frames), other(images, frames))
    block.eval()
    before = block.norm1.running_mean.clone()
    y = block(images, frames)
    assert torch.equal(block.norm1.running_mean, before)
    confidence = frames.field(2).confidence
    assert (y[(confidence == 0)[:, None].expand_as(y)] == 0).all() and y.abs().max() > 0
    optimiser = torch.optim.SGD(block.parameters(), lr=0.1, momentum=0.9)
    block.train()
    block(images, frames).square().mean().backward()
    optimiser.step()
    # Layout in memory stays what the kernels take.
    for tensor in (block.conv1.weight, block.conv1.weight.grad):
        assert tensor.permute(2, 3, 1, 0).is_contiguous()


def test_batch_norm_is_that_of_the_active_positions() -> None:
    torch.manual_seed(1)
    x, active = torch.randn(3, 4, 5, 5) * 3 + 7, (torch.rand(3, 5, 5) > 0.5).float()
    norm, plain = st.MaskedBatchNorm(4), torch.nn.BatchNorm2d(4)
    rows = x.permute(0, 2, 3, 1)[active > 0]
    expected = torch.nn.functional.batch_norm(rows, None, None, training=True)
    found = norm(x, active).permute(0, 2, 3, 1)
    torch.testing.assert_close(found[active > 0], expected, atol=1e-5, rtol=1e-4)
    assert (found[active == 0] == 0).all()
    torch.testing.assert_close(norm.running_mean, 0.1 * rows.mean(0))
    torch.testing.assert_close(st.MaskedBatchNorm(4)(x), plain(x), atol=1e-5, rtol=1e-4)
    empty = st.MaskedBatchNorm(4)
    assert torch.isfinite(empty(x, torch.zeros(3, 5, 5))).all()
    assert (empty.running_mean == 0).all() and (empty.running_var == 1).all()


def test_autocast_leaves_it_in_single_precision(images: torch.Tensor) -> None:
    frames = st.PoseEstimator()(images)
    for backend in ("rust", "torch"):
        layer = st.SimConv2d(1, 4, 3, backend=backend)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(images, frames)
            z = layer(images.bfloat16(), frames)
        assert y.dtype == z.dtype == torch.float32
        assert torch.equal(y, layer(images, frames))
        y.sum().backward()
        assert layer.weight.grad.dtype == torch.float32


def test_compile_does_not_break_the_graph(images: torch.Tensor) -> None:
    torch.manual_seed(1)
    estimator = st.PoseEstimator()
    layers = torch.nn.ModuleList([st.SimConv2d(1, 4, 5, stride=2), st.SimBlock(4, 6)])

    def forward(images: torch.Tensor) -> torch.Tensor:
        frames = estimator(images)
        return layers[1](layers[0](images, frames), frames, gated=True)

    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    y = compiled(images)
    by_compiled = torch.autograd.grad(y.square().sum(), list(layers.parameters()))
    for norm in layers.modules():
        if isinstance(norm, st.MaskedBatchNorm):
            norm.running_mean.zero_()
    z = forward(images)
    assert relative(y, z) < 1e-5
    for ours, theirs in zip(
        by_compiled, torch.autograd.grad(z.square().sum(), list(layers.parameters()))
    ):
        assert relative(ours, theirs) < 1e-4


def test_the_operators_pass_torchs_own_checks() -> None:
    *tensors, scale, angle = case(2, 3, 4, 6, 6, 3, 2)
    tests = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    confidence = torch.ones_like(scale)
    torch.library.opcheck(
        _ops.simconv, (*tensors, scale, angle, confidence, None, 2, 1.0), test_utils=tests
    )
    config = st.PoseEstimator().config
    torch.library.opcheck(_ops.poses, (torch.rand(1, 1, 16, 16), 2, config), test_utils=tests)


def test_other_devices_take_the_path_of_torch() -> None:
    """The meta device has shapes only: no native kernel could run on it."""
    layer = st.SimConv2d(2, 3, 3, stride=2).to("meta")
    x = torch.empty(1, 2, 8, 8, device="meta")
    field = st.Field(*(torch.empty(1, 4, 4, device="meta") for _ in range(3)))
    frames = st.PoseEstimator()(torch.zeros(1, 1, 8, 8))
    assert layer.convolve(x, field, frames, None).shape == (1, 3, 4, 4)
    layer.backend = "rust"
    with pytest.raises(ValueError, match="on the CPU, got meta"):
        layer.convolve(x, field, frames, None)


def test_bad_input_is_named(images: torch.Tensor) -> None:
    estimator = st.PoseEstimator()
    frames = estimator(images)
    layer = st.SimConv2d(1, 4, 3)
    for x, message in (
        (torch.zeros(4, 2, 56, 56), r"\[n, 1, h, w\], got \[4, 2, 56, 56\]"),
        (torch.zeros(4, 1, 56), "expected"),
        (torch.zeros(4, 1, 56, 56, dtype=torch.int64), "got .* of torch.int64"),
        (torch.zeros(3, 1, 56, 56), r"frames of \[3, 56, 56\], got \[4, 56, 56\]"),
        (torch.zeros(4, 1, 55, 56), "on one grid"),
        (torch.zeros(4, 1, 0, 0), "on one grid"),
    ):
        with pytest.raises((ValueError, IndexError), match=message):
            layer(x, frames) if x.ndim == 4 else layer(x, frames, step=1)
    for wrong, message in (
        (torch.zeros(1, 16, 16), "floats"),
        (torch.zeros(1, 1, 16, 16, dtype=torch.uint8), "got .* of torch.uint8"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator(wrong)
    nan = torch.full((1, 1, 16, 16), torch.nan)
    with pytest.raises(ValueError, match="finite"):
        layer(nan, estimator(nan))
    with pytest.raises(ValueError, match="sides of 8 to 2048"):
        estimator(torch.zeros(1, 1, 4, 4)).field(1)
    for arguments, message in (
        ((0, 1, 3), "in_channels"),
        ((1, 1, 4), "odd kernel size, got 4"),
        ((1, 1, 3, 0), "stride of at least 1"),
        ((1, 1, 3, 1, 0), "dilation"),
        ((1, 1, 3, 1, 1, True, math.inf), "reference scale"),
        ((1, 1, 3, 1, 1, True, 1.0, "cuda"), "backend"),
    ):
        with pytest.raises(ValueError, match=message):
            st.SimConv2d(*arguments)
    with pytest.raises(ValueError, match="expected sren, so2, scale or cnn, got se2"):
        st.PoseEstimator("se2")
    with pytest.raises(ValueError, match="1 pose per position"):
        st.PoseEstimator(poses=2)
    # 2 x 2 positions of 9 x 9 pixels may be every fifth to eighth pixel.
    small = estimator(torch.rand(1, 1, 9, 9))
    with pytest.raises(ValueError, match=r"fits steps \[5, 6, 7, 8\]: pass step="):
        layer(torch.zeros(1, 1, 2, 2), small)
    assert layer(torch.zeros(1, 1, 2, 2), small, step=5).shape == (1, 4, 2, 2)


def test_an_empty_batch_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1 image"):
        st.PoseEstimator()(torch.zeros(0, 1, 16, 16))
