"""Networks from PyTorch: what is read, what is left as it was, and gradients compared with PyTorch's."""

from __future__ import annotations

import builtins
import gc
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import monet
import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

torch.set_num_threads(1)
DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(3)


# --- Modules ---------------------------------------------------------------------------------


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 5))


class Residual(nn.Module):
    """Batch normalisation, a residual addition and both poolings."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.conv1 = nn.Conv2d(8, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.norm(self.stem(image))))
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        return self.head(torch.relu(x + y).mean((2, 3)))


class Depthwise(nn.Module):
    """An inverted residual of MobileNet, with a squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(4, 12, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU6())
        self.depth = nn.Sequential(
            nn.Conv2d(12, 12, 3, padding=1, groups=12, bias=False), nn.BatchNorm2d(12), nn.Hardswish()
        )
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 3, 1), nn.SiLU(), nn.Conv2d(3, 12, 1))
        self.project = nn.Sequential(nn.Conv2d(12, 4, 1, bias=False), nn.BatchNorm2d(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depth(self.expand(x))
        return x + self.project(y * torch.sigmoid(self.squeeze(y)))


class Encoder(nn.Module):
    """Tokens, positions, a layer of PyTorch's with dropout, and the embedding again as the head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(24, 16)
        self.positions = nn.Parameter(0.1 * torch.randn(1, 6, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation="gelu", batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, 24, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layer(self.tokens(tokens) + self.positions)))


class Attention(nn.Module):
    """By hand, causal, with GELU as a function."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.register_buffer("mask", torch.full((6, 6), -torch.inf).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.reshape(*x.shape[:2], 2, 8).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5 + self.mask, -1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Recurrent(nn.Module):
    def __init__(self, kind: type, **settings: object) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.layer = kind(8, 8, batch_first=True, **settings)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.tokens(tokens))[0][:, -1])


class OwnLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return ((self.body(x) - wanted) ** 2).mean()


def tokens(*shape: int, below: int = 20) -> torch.Tensor:
    return torch.randint(below, shape)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], object], str | dict]] = {
    "mlp": (mlp, lambda: torch.randn(4, 12), "cross_entropy"),
    "mlp, huber": (mlp, lambda: torch.randn(4, 12), {"type": "huber", "delta": 0.5}),
    "mlp, smoothed labels": (mlp, lambda: torch.randn(4, 12), {"type": "cross_entropy", "label_smoothing": 0.1}),
    "residual": (Residual, lambda: torch.randn(3, 3, 8, 8), "cross_entropy"),
    "depthwise": (Depthwise, lambda: torch.randn(2, 4, 7, 7), "mse"),
    "encoder": (Encoder, lambda: tokens(3, 6), "cross_entropy"),
    "attention": (Attention, lambda: torch.randn(2, 6, 16), "mse"),
    "gru": (lambda: Recurrent(nn.GRU, num_layers=2), lambda: tokens(3, 5), "cross_entropy"),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: tokens(3, 5), "cross_entropy"),
    "upsampled": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2.0, mode="bilinear")),
                  lambda: torch.randn(2, 3, 5, 5), "mse"),
    "scripted": (lambda: torch.jit.script(mlp()), lambda: torch.randn(3, 12), "l1"),
    "own loss": (OwnLoss, lambda: {"wanted": torch.randn(3, 4), "x": torch.randn(3, 6)}, "network"),
    "one sample": (mlp, lambda: torch.randn(1, 12), "bce_with_logits"),
}

# --- Gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_pytorchs(name: str) -> None:
    build, inputs, loss = CASES[name]
    module = build()
    compared = monet.compare_with_torch(module, inputs(), loss=loss)
    assert compared.not_compared == {}
    assert list(compared["name"]) == [name for name, _ in module.named_parameters()]
    assert list(compared["shape"]) == [tuple(p.shape) for p in module.parameters()]
    assert compared.worst < 1e-9
    assert compared["max_gradient"].max() > 1e-3
    assert compared.loss == pytest.approx(compared.torch_loss, rel=1e-12)
    assert all(difference < 1e-12 for difference in compared.output_differences.values())


def test_a_comparison_reads_as_a_table() -> None:
    compared = monet.compare_with_torch(Residual(), torch.randn(4, 3, 8, 8), batch=2)
    assert compared.network.inputs[0].shape == (2, 3, 8, 8)
    text = str(compared)
    assert "conv1.bias" in text
    assert "PyTorch's" in text
    assert repr(compared).startswith("TorchComparison(12 parameters")
    bias = list(compared["name"]).index("conv1.bias")  # in front of a batch normalisation
    assert compared["max_gradient"][bias] < 1e-14
    assert compared["relative_difference"][bias] < 1e-12


def test_a_comparison_can_be_pickled() -> None:
    compared = monet.compare_with_torch(mlp(), torch.randn(4, 12))
    again = pickle.loads(pickle.dumps(compared))
    assert str(again) == str(compared)
    assert again.worst == compared.worst
    assert again.network is None
    assert list(again["name"]) == list(compared["name"])


def test_the_target_is_the_callers() -> None:
    module, x = mlp(), torch.randn(4, 12)
    labels = torch.tensor([0, 4, 2, 1])
    compared = monet.compare_with_torch(module, x, target=labels)
    expected = nn.functional.cross_entropy(module.double()(x.double()), labels)
    assert compared.loss == pytest.approx(expected.item(), rel=1e-12)
    assert compared.loss == monet.compare_with_torch(module, x, target=[0, 4, 2, 1]).loss
    assert compared.loss != monet.compare_with_torch(module, x).loss


def test_dropout_is_off_and_named() -> None:
    assert monet.compare_with_torch(Encoder(), tokens(2, 6)).dropout_off == [
        "layer.self_attn", "layer.dropout", "layer.dropout1", "layer.dropout2"
    ]  # fmt: skip

    class Noisy(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return nn.functional.dropout(super().forward(input), 0.5)

    with pytest.raises(ValueError, match="Noisy draws random numbers"):
        monet.compare_with_torch(Noisy(4, 4), torch.randn(2, 4))


def test_what_is_not_trained_is_not_compared() -> None:
    module = Residual()
    module.conv1.weight.requires_grad = False
    module.unused = nn.Linear(2, 2)
    compared = monet.compare_with_torch(module, torch.randn(2, 3, 8, 8))
    assert "conv1.weight" not in compared["name"]
    assert set(compared.not_compared) == {"unused.weight", "unused.bias"}
    assert "unused.bias" in str(compared)
    assert compared.worst < 1e-9


def test_a_gradient_of_its_own_shows() -> None:
    """A straight-through estimator: the file has its forward part alone."""

    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return torch.sign(x)

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    class Rounded(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            y = super().forward(input)
            return Round.apply(y) + y / 2

    compared = monet.compare_with_torch(Rounded(4, 4), torch.randn(2, 4), loss="mse")
    assert compared.loss == pytest.approx(compared.torch_loss, rel=1e-12)
    assert compared.worst == pytest.approx(2 / 3)  # 1/2 of 3/2


@pytest.mark.parametrize("norm", [nn.BatchNorm2d, nn.InstanceNorm2d])
def test_normalisations_of_one_sample_in_front_of_a_transposition(norm: type) -> None:
    """PyTorch 1.13's own gradients are wrong there, as finite differences show."""

    class Tokens(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.flatten(2).transpose(1, 2)

    module = nn.Sequential(nn.Conv2d(3, 4, 3), norm(4, affine=True), Tokens(), nn.Linear(4, 5))
    assert monet.compare_with_torch(module, torch.randn(1, 3, 6, 6), loss="mse").worst < 1e-9


def test_computed_weights_are_compared() -> None:
    module = nn.utils.weight_norm(nn.Linear(6, 4))
    module(torch.randn(2, 6))  # now its weight is no leaf, which cannot be copied
    compared = monet.compare_with_torch(module, torch.randn(2, 6), loss="l1")
    assert set(compared["name"]) == {"bias", "weight_g", "weight_v"}
    assert compared.worst < 1e-9


# --- What is read ----------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_symbolic_batch_is_a_fixed_one(batch: int) -> None:
    module = Residual()
    chip = monet.read_chip(DATA / "hardware" / "edge_tpu.yaml")
    symbolic = monet.from_torch(module, torch.randn(3, 3, 8, 8), batch=batch)
    fixed = monet.from_torch(module, torch.randn(batch, 3, 8, 8), symbolic_batch=False)
    assert symbolic.inputs == fixed.inputs == [("image", (batch, 3, 8, 8), "fp32")]
    assert symbolic.outputs == fixed.outputs == [("output", (batch, 10), "fp32")]
    assert symbolic.parameters == fixed.parameters == sum(p.numel() for p in module.parameters())
    results = [net.training_step().schedule(chip, mode="layer-by-layer").to_dict() for net in (symbolic, fixed)]
    for result in results:
        del result["provenance"]
    assert results[0] == results[1]


def test_examples_set_the_batch() -> None:
    assert monet.from_torch(mlp(), torch.randn(7, 12)).inputs[0].shape == (7, 12)
    assert monet.from_torch(mlp(), torch.randn(1, 12)).inputs[0].shape == (1, 12)
    assert monet.from_torch(mlp(), (torch.randn(1, 12),), batch=64).inputs[0].shape == (64, 12)


def test_inputs_are_named_after_arguments() -> None:
    inputs = {"wanted": torch.randn(3, 4), "x": torch.randn(3, 6)}
    assert [one.name for one in monet.from_torch(OwnLoss(), inputs).inputs] == ["x", "wanted"]
    by_place = monet.from_torch(OwnLoss(), (inputs["x"], inputs["wanted"]), input_names=["a", "b"])
    assert [one.name for one in by_place.inputs] == ["a", "b"]

    class Clash(nn.Linear):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return super().forward(weight)

    assert monet.from_torch(Clash(3, 3), torch.randn(2, 3)).inputs[0].name == "weight_input"


def test_several_outputs_have_names() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> dict[str, object]:
            y = self.body(x)
            return {"y": y, "pair": (y * 2, None)}

    net = monet.from_torch(Two(), torch.randn(2, 3), batch=4)
    assert [(one.name, one.shape) for one in net.outputs] == [("output_0", (4, 3)), ("output_1", (4, 3))]


def test_frozen_parameters_and_buffers_are_not_trained() -> None:
    module = Attention()
    module.register_buffer("codes", torch.randn(16))
    module.forward_ = module.forward
    module.forward = lambda x: module.forward_(x) * module.codes
    all_of_it = sum(p.numel() for p in module.parameters())
    assert monet.from_torch(module, torch.randn(2, 6, 16)).parameters == all_of_it
    module.up.requires_grad_(False)
    assert monet.from_torch(module, torch.randn(2, 6, 16)).parameters == all_of_it - 32 * 17


class Tied(nn.Module):
    """A head that reads the embedding, and a layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.layer = nn.Linear(8, 8)
        self.head = nn.Linear(8, 30, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.layer(torch.tanh(self.layer(self.embed(ids))))
        return self.head(x)


def test_tied_weights_are_one_parameter() -> None:
    module = Tied()
    assert monet.from_torch(module, tokens(2, 3)).parameters == 240 + 72
    compared = monet.compare_with_torch(module, tokens(2, 3))
    assert set(compared["name"]) == {"embed.weight", "layer.weight", "layer.bias"}
    assert compared.worst < 1e-9
    copied = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    copied[2].load_state_dict(copied[0].state_dict())  # equal numbers, two parameters
    assert monet.from_torch(copied, torch.randn(3, 4)).parameters == 40


def test_what_looks_like_a_buffer_is_what_the_module_says() -> None:
    module = nn.Linear(6, 6)
    module.centres = nn.Parameter(torch.linspace(-1.0, 1.0, 6))
    module.register_buffer("codes", torch.randn(6, requires_grad=True))
    module.forward_ = module.forward
    module.forward = lambda x: module.forward_(x - module.centres) * module.codes
    assert monet.from_torch(module, torch.randn(2, 6)).parameters == 42 + 6


def test_a_network_of_its_own_opset() -> None:
    for opset in (13, 17):
        assert monet.from_torch(mlp(), torch.randn(2, 12), opset=opset).parameters == 565


# --- What is left as it was ------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("call", [monet.from_torch, monet.compare_with_torch])
def test_the_module_is_left_as_it_was(training: bool, call: Callable[..., object]) -> None:
    module = Residual().train(training)
    module.pool.train(not training)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    held = {name: tensor.data_ptr() for name, tensor in module.state_dict().items()}
    flags = [part.training for part in module.modules()]
    drawn = torch.random.get_rng_state()
    call(module, torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)))
    after = module.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(held[name] == after[name].data_ptr() for name in held)
    assert [part.training for part in module.modules()] == flags
    assert torch.equal(drawn, torch.random.get_rng_state())
    assert all(parameter.grad is None and parameter.dtype == torch.float32 for parameter in module.parameters())


def test_the_file_has_the_modules_own_statistics() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    module[1].running_mean[:] = torch.tensor([0.125, 0.25, 0.375])
    numbers = module[1].running_mean.numpy().tobytes()
    assert numbers in Path(monet.from_torch(module, torch.randn(8, 3)).path).read_bytes()
    assert module[1].running_mean.numpy().tobytes() == numbers
    assert int(module[1].num_batches_tracked) == 0


def test_batch_normalisation_in_evaluation_mode() -> None:
    module = Residual()
    module.norm1.eval()
    with pytest.raises(ValueError, match="norm1 in evaluation mode"):
        monet.compare_with_torch(module, torch.randn(3, 3, 8, 8))
    module.norm.eval(), module.norm2.eval()
    module.norm1.running_mean[:] = 0.5
    compared = monet.compare_with_torch(module, torch.randn(3, 3, 8, 8))
    assert compared.worst < 1e-9
    bias = list(compared["name"]).index("conv1.bias")
    assert compared["max_gradient"][bias] > 1e-6


def test_the_file_lives_as_long_as_the_network() -> None:
    step = monet.from_torch(mlp(), torch.randn(2, 12)).training_step()
    gc.collect()
    path = step.network.path
    assert os.path.exists(path)
    chip = monet.read_chip(DATA / "hardware" / "edge_tpu.yaml")
    result = step.schedule(chip, mode="layer-by-layer")
    assert result.name.startswith("Sequential on")
    del step
    gc.collect()
    assert not os.path.exists(os.path.dirname(path))
    assert result.latency_cycles > 0


# --- What cannot be exported or read ---------------------------------------------------------


class Spectrum(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x).real


def test_an_operator_that_cannot_be_exported_is_named_with_its_modules() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(Spectrum(), Spectrum()))
    with pytest.raises(monet.InputError, match="aten::fft_fft") as raised:
        monet.from_torch(module, torch.randn(2, 4))
    assert [where for where, _, _ in raised.value.problems] == ["Sequential.1.0 (Spectrum)", "Sequential.1.1 (Spectrum)"]
    assert "test_torch.py, line" in raised.value.problems[0][2]


def test_a_setting_that_cannot_be_exported_is_named_with_its_module() -> None:
    with pytest.raises(monet.InputError, match="dropout in training mode") as raised:
        monet.from_torch(Recurrent(nn.LSTM, num_layers=2, dropout=0.5), tokens(2, 5))
    assert raised.value.problems[0][0] == "Recurrent.layer (LSTM)"


def test_an_older_opset_says_which_has_it() -> None:
    class Rows(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tril(x)

    with pytest.raises(monet.InputError, match="aten::tril") as raised:
        monet.from_torch(Rows(), torch.randn(2, 4), opset=13)
    assert raised.value.problems[0][0] == "Rows"
    assert raised.value.problems[0][2] == "opset=14 has it"


def test_what_the_reader_refuses_has_the_node() -> None:
    class Sorted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nonzero(x)

    with pytest.raises(monet.InputError) as raised:
        monet.from_torch(nn.Sequential(nn.Linear(4, 4), Sorted()), torch.randn(2, 4))
    assert raised.value.problems[0][0].startswith("Sequential [node '/1/")


def test_the_modules_own_exceptions_pass() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        monet.from_torch(mlp(), torch.randn(2, 11))
    folder = os.listdir(os.environ.get("TMPDIR", "/tmp"))
    with pytest.raises(RuntimeError):
        monet.from_torch(mlp(), torch.randn(2, 11))
    assert sorted(folder) == sorted(os.listdir(os.environ.get("TMPDIR", "/tmp")))


X = torch.zeros(2, 12)
WRONG_EXPORTS = {
    "module": ((object(), X), {}, TypeError, "module: object"),
    "class": ((nn.Linear, X), {}, TypeError, "module: type"),
    "array": ((mlp, np.zeros((2, 12))), {}, TypeError, r"example_inputs\[0\]: ndarray"),
    "nothing": ((mlp, ()), {}, ValueError, "example_inputs"),
    "none": ((mlp, None), {}, TypeError, r"example_inputs\[0\]"),
    "empty": ((mlp, torch.zeros(0, 12)), {}, ValueError, r"example_inputs\[0\]"),
    "keyword": ((mlp, {"picture": X}), {}, ValueError, "picture"),
    "zero batch": ((mlp, X), {"batch": 0}, ValueError, "batch"),
    "huge batch": ((mlp, X), {"batch": 10**30}, ValueError, "batch"),
    "text batch": ((mlp, X), {"batch": "2"}, TypeError, "batch"),
    "true batch": ((mlp, X), {"batch": True}, TypeError, "batch"),
    "other batch": ((mlp, X), {"batch": 3, "symbolic_batch": False}, ValueError, "batch"),
    "symbolic": ((mlp, X), {"symbolic_batch": "no"}, TypeError, "symbolic_batch"),
    "opset": ((mlp, X), {"opset": 9}, ValueError, "opset"),
    "opset type": ((mlp, X), {"opset": 17.5}, TypeError, "opset"),
    "names": ((mlp, X), {"input_names": "x"}, TypeError, "input_names"),
    "two names": ((mlp, X), {"input_names": ["x", "y"]}, ValueError, "input_names"),
}


@pytest.mark.parametrize("name", WRONG_EXPORTS)
def test_wrong_arguments_are_named(name: str) -> None:
    (module, inputs), more, error, says = WRONG_EXPORTS[name]
    with pytest.raises(error, match=says):
        monet.from_torch(mlp() if module is mlp else module, inputs, **more)


WRONG_COMPARISONS = {
    "loss": ({"loss": "mean"}, ValueError, "loss: 'mean'"),
    "loss type": ({"loss": 3}, TypeError, "loss"),
    "loss settings": ({"loss": {"type": "mse", "sharpness": 2}}, ValueError, "sharpness"),
    "labels": ({"target": torch.tensor([0, 5])}, ValueError, "labels are not between 0 and 4"),
    "label type": ({"target": torch.tensor([0.5, 1.0])}, TypeError, "labels"),
    "target shape": ({"loss": "mse", "target": torch.zeros(2, 4)}, ValueError, r"target: its shape is \[2, 4\]"),
    "target type": ({"loss": "mse", "target": "x"}, TypeError, "target"),
    "batch": ({"batch": 3}, ValueError, "batch"),
    "seed": ({"seed": -1}, ValueError, "seed"),
    "scalar": ({"loss": "network"}, ValueError, "not a scalar"),
    "target of a network's loss": ({"loss": "network", "target": X}, ValueError, "target"),
}


@pytest.mark.parametrize("name", WRONG_COMPARISONS)
def test_wrong_comparisons_are_named(name: str) -> None:
    more, error, says = WRONG_COMPARISONS[name]
    with pytest.raises(error, match=says):
        monet.compare_with_torch(mlp(), X, **more)


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(builtins, "__import__", real)
    for call in (monet.from_torch, monet.compare_with_torch):
        with pytest.raises(ImportError, match="python3-torch"):
            call(object(), X)
