#!/usr/bin/env python3
"""Writes data/workload/diana_resnet18.onnx, jia_resnet50.onnx, resnet8.onnx and ds_cnn.onnx, the networks
of the measured chips in docs/validation.md, and tests/fixtures/stream/resnet18_begin.onnx, the network of Stream's
recorded runs. The files have shapes without values.

    /usr/bin/python3 tools/make_chip_networks.py [FOLDER] [FOLDER_OF_THE_LAST]
"""

import sys
from pathlib import Path

import onnx
from onnx import helper

Node = tuple[str, str, list[str], dict[str, int | list[int]]]
Shapes = dict[str, list[int]]


def weight(file: str, name: str, shape: list[int]) -> onnx.TensorProto:
    """Returns an fp32 initializer whose values are in a file that does not exist."""
    made = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=shape,
                            data_location=onnx.TensorProto.EXTERNAL)
    made.external_data.add(key="location", value=file)
    return made


def model(graph: str, nodes: list[Node], image: list[int], weights: Shapes, output: list[int]) -> bytes:
    made = [helper.make_node(kind, inputs, [f"{name}_out"], name=name, **attributes)
            for name, kind, inputs, attributes in nodes]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
            for name, shape in (("input", image), (f"{nodes[-1][0]}_out", output))]
    initializers = [weight(f"{graph}.weights", *one) for one in weights.items()]
    body = helper.make_graph(made, graph, ends[:1], ends[1:], initializers)
    opset = helper.make_opsetid("", 17)
    made_model = helper.make_model(body, producer_name="monet", ir_version=8, opset_imports=[opset])
    helper.set_model_props(made_model, {"monet.weights": "stripped"})
    return made_model.SerializeToString()


def convolution(name: str, source: str, kernel: int, pads: list[int], stride: int = 1, bias: bool = False) -> Node:
    attributes: dict[str, int | list[int]] = {"dilations": [1, 1], "group": 1, "kernel_shape": [kernel, kernel],
                                              "pads": pads, "strides": [stride, stride]}
    inputs = [source, name + "_weight"] + ([name + "_bias"] if bias else [])
    return (name, "Conv", inputs, attributes)


def diana() -> bytes:
    """The first segment of ResNet-18, with pooling of 2x2 and a 1x1 convolution as first shortcut."""
    same = [1, 1, 1, 1]
    pooling: dict[str, int | list[int]] = {"kernel_shape": [2, 2], "pads": [0] * 4, "strides": [2, 2]}
    nodes: list[Node] = [
        convolution("conv1", "input", 7, [3, 3, 2, 2], 2), ("maxpool", "MaxPool", ["conv1_out"], pooling),
        convolution("conv2_1", "maxpool_out", 3, same), convolution("shortcut_1x1", "maxpool_out", 1, [0] * 4),
        convolution("conv2_2", "conv2_1_out", 3, same), ("add_1", "Add", ["conv2_2_out", "shortcut_1x1_out"], {}),
        convolution("conv2_3", "add_1_out", 3, same), convolution("conv2_4", "conv2_3_out", 3, same),
        ("add_2", "Add", ["conv2_4_out", "add_1_out"], {})]
    weights: Shapes = {"conv1_weight": [64, 3, 7, 7]}
    for name, kernel in (("2_1", 3), ("1x1", 1), ("2_2", 3), ("2_3", 3), ("2_4", 3)):
        prefix = "shortcut_" if name == "1x1" else "conv"
        weights[f"{prefix}{name}_weight"] = [64, 64, kernel, kernel]
    return model("diana_resnet18", nodes, [1, 3, 224, 224], weights, [1, 64, 56, 56])


def jia() -> bytes:
    """A bottleneck of ResNet-50 and half of the next one at 56x56, without additions."""
    nodes: list[Node] = []
    weights: Shapes = {}
    source = "input"
    for name, outputs, channels, kernel in (("b1_conv1", 64, 256, 1), ("b1_conv2", 64, 64, 3),
                                            ("b1_conv3", 256, 64, 1), ("b2_conv1", 64, 256, 1),
                                            ("b2_conv2", 64, 64, 3)):
        nodes.append(convolution(name, source, kernel, [kernel // 2] * 4))
        weights[name + "_weight"] = [outputs, channels, kernel, kernel]
        source = name + "_out"
    return model("jia_resnet50", nodes, [1, 256, 56, 56], weights, [1, 64, 56, 56])


class TinyNetwork:
    """A network of MLPerf Tiny, with batch normalisation folded into its convolutions."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.weights: Shapes = {}

    def add(self, name: str, kind: str, inputs: list[str]) -> str:
        self.nodes.append((name, kind, inputs, {}))
        return name + "_out"

    def relu(self, name: str, source: str) -> str:
        return self.add(name + "_relu", "Relu", [source])

    def convolve(self, name: str, source: str, shape: list[int], stride: int = 1,
                 pads: list[int] | None = None) -> str:
        """`shape` is that of the weights. One input channel of several means a depthwise convolution."""
        kernel = shape[2]
        one = convolution(name, source, kernel, pads or [kernel // 2] * 4, stride, bias=True)
        one[3]["kernel_shape"] = shape[2:]
        self.nodes.append(one)
        self.weights[name + "_weight"] = shape
        self.weights[name + "_bias"] = [shape[0]]
        return name + "_out"

    def classify(self, source: str, channels: int, classes: int) -> None:
        source = self.add("pool", "GlobalAveragePool", [source])
        source = self.add("flat", "Flatten", [source])
        self.nodes.append(("classes", "Gemm", [source, "classes_weight", "classes_bias"], {}))
        self.nodes[-1][3]["transB"] = 1
        self.weights["classes_weight"] = [classes, channels]
        self.weights["classes_bias"] = [classes]


def resnet8() -> bytes:
    net = TinyNetwork()
    source = net.relu("conv1", net.convolve("conv1", "input", [16, 3, 3, 3]))
    channels = 16
    for block, width in enumerate((16, 32, 64), start=1):
        stride = 1 if width == channels else 2
        name = f"block{block}"
        shape = [width, channels, 3, 3]
        x = net.relu(name + "_1", net.convolve(name + "_1", source, shape, stride))
        x = net.convolve(name + "_2", x, [width, width, 3, 3])
        if stride == 2:
            source = net.convolve(name + "_short", source, [width, channels, 1, 1], stride)
        source = net.relu(name, net.add(name + "_add", "Add", [x, source]))
        channels = width
    net.classify(source, channels, 10)
    return model("resnet8", net.nodes, [1, 3, 32, 32], net.weights, [1, 10])


def ds_cnn() -> bytes:
    net = TinyNetwork()
    first = net.convolve("conv1", "input", [64, 1, 10, 4], 2, [4, 1, 5, 1])
    source = net.relu("conv1", first)
    for block in range(1, 5):
        wise = f"depthwise{block}"
        net.convolve(wise, source, [64, 1, 3, 3])
        net.nodes[-1][3]["group"] = 64
        source = net.relu(wise, wise + "_out")
        point = f"pointwise{block}"
        source = net.relu(point, net.convolve(point, source, [64, 64, 1, 1]))
    net.classify(source, 64, 12)
    return model("ds_cnn", net.nodes, [1, 1, 49, 10], net.weights, [1, 12])


def resnet18_begin() -> bytes:
    """The first eight operators of ResNet-18."""
    pooling: dict[str, int | list[int]] = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    nodes: list[Node] = [
        convolution("conv1", "input", 7, [3] * 4, 2), ("relu1", "Relu", ["conv1_out"], {}),
        ("maxpool", "MaxPool", ["relu1_out"], pooling), convolution("conv2_1", "maxpool_out", 3, [1] * 4),
        ("relu2_1", "Relu", ["conv2_1_out"], {}), convolution("conv2_2", "relu2_1_out", 3, [1] * 4),
        ("add", "Add", ["conv2_2_out", "maxpool_out"], {}), ("relu2_2", "Relu", ["add_out"], {})]
    weights: Shapes = {"conv1_weight": [64, 3, 7, 7]}
    weights |= {f"conv2_{i}_weight": [64, 64, 3, 3] for i in (1, 2)}
    return model("resnet18_begin", nodes, [1, 3, 224, 224], weights, [1, 64, 56, 56])


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "data/workload")
    (folder / "diana_resnet18.onnx").write_bytes(diana())
    (folder / "jia_resnet50.onnx").write_bytes(jia())
    (folder / "resnet8.onnx").write_bytes(resnet8())
    (folder / "ds_cnn.onnx").write_bytes(ds_cnn())
    fixtures = Path(sys.argv[2] if len(sys.argv) > 2 else "tests/fixtures/stream")
    (fixtures / "resnet18_begin.onnx").write_bytes(resnet18_begin())


if __name__ == "__main__":
    main()
