#!/usr/bin/env python3
"""Export reference networks as weightless ONNX training graphs, with independent facts.

Each network is traced by PyTorch in training mode (batch normalisation and dropout stay in the
graph, nothing is folded), then its weights are reduced to their shapes: the payload of every
parameter is declared as external data in a file that is never written. The remaining few hundred
kilobytes describe the computation completely.

The same run counts trainable parameters and multiply-accumulates by watching PyTorch execute one
forward pass. That count never looks at the ONNX file, so a reader of the file can be tested
against it.
"""

import argparse
import contextlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
import torchvision
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import small_networks as small
from language_networks import Shape, bert, gpt2
from net import exported_model
from products import product_macs

OPSET = 17
TRACE_BATCH = 2  # Not 1: a traced 1 would be mistaken for a broadcast dimension.
KEPT_ELEMENTS = 64  # A constant up to this size keeps its values.
MAX_FILE_BYTES = 1_000_000
REPOSITORY = Path(__file__).resolve().parent.parent

FLOAT_TYPES = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16,
                         onnx.TensorProto.DOUBLE})


# --- Networks --------------------------------------------------------------------------------


def make_resnet18_cifar() -> nn.Module:
    """ResNet-18 for 32x32 images: a 3x3 stride-1 stem and no max-pooling."""
    model = torchvision.models.resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def make_vit_tiny() -> nn.Module:
    """ViT-Ti/16: the smallest published vision transformer."""
    return torchvision.models.VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=3,
                                                hidden_dim=192, mlp_dim=768, num_classes=1000)


@dataclass(frozen=True)
class Network:
    """How to build a network, and the names and shape of its single input and output."""

    build: Callable[[], nn.Module]
    input_shape: tuple[int, ...]  # Without the batch axis.
    input_name: str = "input"
    output_name: str = "logits"
    vocabulary: int | None = None  # Input is token indices below this, else an image.

    def example(self, batch: int) -> Tensor:
        shape = (batch, *self.input_shape)
        if self.vocabulary is None:
            return torch.randn(shape)
        return torch.randint(self.vocabulary, shape)


def gpt2_network(shape: Shape) -> Network:
    return Network(build=lambda: gpt2(shape), input_shape=(shape.positions,), input_name="input_ids",
                   vocabulary=shape.vocabulary)


IMAGENET = (3, 224, 224)
NETWORKS: dict[str, Network] = {
    "bert_large": Network(lambda: bert(Shape(24, 1024, 16, 30522, 512)), (128,), input_name="input_ids",
                          vocabulary=30522),
    "gpt2": gpt2_network(Shape(12, 768, 12, 50257, 1024)), "gpt2_nano": gpt2_network(Shape(2, 64, 2, 256, 64)),
    "gpt_4x512": gpt2_network(Shape(4, 512, 4, 4000, 256)),
    "lstm": Network(lambda: small.lstm_classifier(vocabulary=1000, width=64, layers=2, classes=10), (32,),
                    input_name="input_ids", vocabulary=1000),
    "mobilenet_v2": Network(torchvision.models.mobilenet_v2, IMAGENET),
    "resnet18": Network(torchvision.models.resnet18, IMAGENET),
    "resnet18_cifar": Network(make_resnet18_cifar, (3, 32, 32)),
    "resnet20_cifar": Network(lambda: small.SmallResNet(blocks=3, classes=10, normalised_shortcut=True), (3, 32, 32)),
    "resnet50": Network(torchvision.models.resnet50, IMAGENET),
    "resnet8_16": Network(lambda: small.SmallResNet(blocks=1, classes=10, normalised_shortcut=False), (3, 16, 16)),
    "unet": Network(lambda: small.UNet(channels=16, levels=3, classes=1, interpolate=False), (3, 128, 128)),
    "vgg16": Network(torchvision.models.vgg16, IMAGENET), "vit_tiny": Network(make_vit_tiny, IMAGENET)}
# Small networks, exported for tests only, to tests/fixtures/networks/.
TEST_NETWORKS: dict[str, Network] = {
    "diffusion": Network(lambda: small.diffusion_block(channels=8, groups=4), (3, 8, 8)),
    "llama": Network(lambda: small.llama(vocabulary=64, width=64, layers=2), (12,), input_name="input_ids",
                     vocabulary=64),
    "unet_bilinear": Network(lambda: small.UNet(channels=8, levels=2, classes=3, interpolate=True), (3, 16, 16)),
    "vit_micro": Network(small.make_vit_micro, (3, 32, 32))}


# --- Export ----------------------------------------------------------------------------------


def export_onnx(model: nn.Module, network: Network) -> onnx.ModelProto:
    """Trace `model` into a checked ONNX training graph that still holds its weights."""
    exported = exported_model(model, [network.example(TRACE_BATCH)], OPSET, input_names=[network.input_name],
                              output_names=[network.output_name],
                              dynamic_axes={network.input_name: {0: "batch"}, network.output_name: {0: "batch"}})
    onnx.checker.check_model(exported)
    return exported


def declare_output_shape(graph: onnx.GraphProto, shape: torch.Size) -> None:
    """Replace the symbols the exporter invents for fixed axes; only the batch axis is free."""
    for dimension, extent in list(zip(graph.output[0].type.tensor_type.shape.dim, shape))[1:]:
        dimension.dim_value = extent


def strip_tensor(tensor: onnx.TensorProto, location: str) -> onnx.TensorProto:
    """Keep the name, type and shape of `tensor`; its values move to a file that is not shipped."""
    stripped = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    stripped.data_location = onnx.TensorProto.EXTERNAL
    stripped.external_data.add(key="location", value=location)
    return stripped


def strip_model(exported: onnx.ModelProto, name: str, state_names: list[str]) -> onnx.ModelProto:
    """Remove weights, documentation and inferred shapes; order initializers as PyTorch does."""
    state_rank = {state: rank for rank, state in enumerate(state_names)}
    initializers = sorted(exported.graph.initializer,
                          key=lambda tensor: (state_rank.get(tensor.name, len(state_rank)), tensor.name))
    graph = exported.graph
    graph.name = name
    graph.doc_string = exported.doc_string = ""
    del graph.value_info[:]
    del graph.initializer[:]
    for tensor in initializers:
        is_weight = tensor.name in state_rank and tensor.data_type in FLOAT_TYPES
        is_large = math.prod(tensor.dims) > KEPT_ELEMENTS
        stripped = is_weight or is_large
        graph.initializer.append(strip_tensor(tensor, f"{name}.weights") if stripped else tensor)
    return exported


def require_small_constants(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        for attribute in node.attribute:
            if math.prod(attribute.t.dims) > KEPT_ELEMENTS:
                raise ValueError(f"{node.name}: constant of shape {list(attribute.t.dims)}")


def require_inferable(model: onnx.ModelProto) -> None:
    """Checks that shape inference still finds an element type for every value of the stripped graph."""
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    typed = {value.name for value in (*inferred.graph.value_info, *inferred.graph.output)}
    for node in model.graph.node:
        for output in filter(None, node.output):
            if output not in typed:
                raise ValueError(f"{node.name}: the type of '{output}' cannot be inferred")


# --- Independent facts -----------------------------------------------------------------------


class MacCounter(TorchDispatchMode):
    """Adds up the multiply-accumulates of every product PyTorch executes, by module name.

    This sees the primitive operators, below modules and functions, so it also counts a product
    no module stands for: attention scores, or a projection called as a function.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.macs: Counter[str] = Counter()
        self._active: list[str] = []
        self._hooks = []
        for name, module in model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(self._enter(name)))
            self._hooks.append(module.register_forward_hook(self._leave))

    def _enter(self, name: str) -> Callable[..., None]:
        return lambda module, inputs: self._active.append(name)

    def _leave(self, module: nn.Module, inputs: object, output: object) -> None:
        self._active.pop()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        result = function(*args, **(kwargs or {}))
        operator = function.overloadpacket.__name__
        owner = self._active[-1] if self._active else ""
        macs = product_macs(operator, args, result)
        if macs and operator in ("bmm", "baddbmm"):
            self.macs[f"{owner}:batched"] += macs
        elif macs:
            self.macs[owner if operator == "convolution" else owner or "head"] += macs
        return result

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()


@contextlib.contextmanager
def counting_macs(model: nn.Module) -> Iterator[MacCounter]:
    counter = MacCounter(model)
    try:
        with counter:
            yield counter
    finally:
        counter.close()


@contextlib.contextmanager
def applying_formulas(model: nn.Module) -> Iterator[dict[str, int]]:
    """The textbook products of Conv2d and Linear modules, from their own input and output."""
    macs: dict[str, int] = {}

    def record(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if isinstance(module, nn.Conv2d):
                kernel_height, kernel_width = module.kernel_size
                channels = module.in_channels // module.groups
                macs[name] = output.numel() * channels * kernel_height * kernel_width
            elif isinstance(module, nn.Linear):
                macs[name] = output.numel() * module.in_features

        return hook

    hooks = [module.register_forward_hook(record(name)) for name, module in model.named_modules()]
    try:
        yield macs
    finally:
        for hook in hooks:
            hook.remove()


def forward_macs(model: nn.Module, network: Network) -> tuple[dict[str, int], torch.Size]:
    """Multiply-accumulates of one forward pass over one sample by layer, and its output shape."""
    with torch.no_grad(), applying_formulas(model) as formulas, counting_macs(model) as counter:
        output = model(network.example(1))
    for layer, expected in formulas.items():
        if counter.macs[layer] != expected:
            raise ValueError(f"{layer}: executed {counter.macs[layer]} MACs, expected {expected}")
    return dict(counter.macs), output.shape


def gather_facts(layer_macs: dict[str, int], model: nn.Module, exported: onnx.ModelProto) -> dict:
    # parameters() yields a shared parameter once.
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    histogram = dict(sorted(Counter(node.op_type for node in exported.graph.node).items()))
    return {"parameters": trainable, "macs": sum(layer_macs.values()), "layer_macs": layer_macs,
            "op_histogram": histogram}


# --- Command line ----------------------------------------------------------------------------


def list_parameters(model: nn.Module, exported: onnx.ModelProto) -> None:
    """Writes metadata: the trained initialisers, and that their values are left out on purpose."""
    trained = {n for n, p in model.state_dict(keep_vars=True).items() if p.requires_grad}
    names = [t.name for t in exported.graph.initializer if t.name in trained]
    onnx.helper.set_model_props(exported, {"monet.parameters": "\n".join(names), "monet.weights": "stripped"})


def export_weightless(name: str, network: Network, model: nn.Module, directory: Path,
                      output_shape: torch.Size) -> onnx.ModelProto:
    """Write `directory`/`name`.onnx, without weights."""
    exported = export_onnx(model, network)
    declare_output_shape(exported.graph, output_shape)
    stripped = strip_model(exported, name, list(model.state_dict()))
    list_parameters(model, stripped)
    require_small_constants(stripped)
    require_inferable(stripped)
    data = stripped.SerializeToString(deterministic=True)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{name}: {len(data)} bytes is too large to keep in the repository")
    (directory / f"{name}.onnx").write_bytes(data)
    print(f"{name}: {len(data)} bytes, {len(stripped.graph.node)} nodes")
    return stripped


def export_network(name: str, arguments: argparse.Namespace) -> None:
    """Write a network and the facts about it; networks for tests have no facts."""
    network = (NETWORKS | TEST_NETWORKS)[name]
    torch.manual_seed(0)
    model = network.build().train()
    if name in TEST_NETWORKS:
        with torch.no_grad():
            output_shape = model(network.example(1)).shape
        export_weightless(name, network, model, arguments.test_output, output_shape)
        return
    layer_macs, output_shape = forward_macs(model, network)
    stripped = export_weightless(name, network, model, arguments.output, output_shape)
    facts = gather_facts(layer_macs, model, stripped)
    print(f"{name}: {facts['parameters']} parameters, {facts['macs']} MACs")
    update_facts(arguments.facts, {name: facts})


def update_facts(path: Path, facts: dict[str, dict]) -> None:
    """Replace the entries in `facts`, leaving those of other networks as they are."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    merged = dict(sorted({**known, **facts}.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Export reference networks as weightless ONNX training graphs.")
    parser.add_argument(
        "--only", metavar="NAME", action="append", choices=sorted(NETWORKS | TEST_NETWORKS),
        help="export this network only; may be repeated " f"({', '.join(sorted(NETWORKS | TEST_NETWORKS))})")
    parser.add_argument("--output", metavar="DIR", type=Path, default=REPOSITORY / "data" / "workload",
                        help="where the .onnx files go (default: data/workload)")
    parser.add_argument("--facts", metavar="FILE", type=Path,
                        default=REPOSITORY / "tests" / "fixtures" / "networks.json",
                        help="the table of facts to update (default: tests/fixtures/networks.json)")
    parser.add_argument("--test-output", metavar="DIR", type=Path,
                        default=REPOSITORY / "tests" / "fixtures" / "networks",
                        help="where the networks for tests go (default: tests/fixtures/networks)")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.test_output.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or sorted(NETWORKS | TEST_NETWORKS):
        export_network(name, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
