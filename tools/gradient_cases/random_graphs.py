"""Random graphs: views, broadcasts, products and reductions of tensors that are read several times.

They cover cases that single operators lack: sums of gradients, views of views, sliced parameters, and outputs
that are read again.
"""

import math
import random
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from gradient_cases.framework import Case, Node, constant, data

CASES = 120
LARGEST = 120  # maximum elements of a tensor

UNARY: dict[str, Callable[[Tensor], Tensor]] = {"Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "Relu": torch.relu,
                                                "Neg": torch.neg, "Abs": torch.abs, "Erf": torch.erf}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul}


class RandomGraph:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs = []
        self.nodes: list[Node] = []
        self.calls: list[Callable[..., Tensor]] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        base = [self.random.randint(1, 4) for _ in range(self.random.randint(1, 4))]
        for i in range(self.random.randint(1, 4)):
            shape = tuple(size if self.random.random() < 0.75 else 1 for size in base)
            self.inputs.append(data(f"P{i}", shape))
            self.shapes[f"P{i}"] = shape

    def pick(self) -> str:
        """Draws a tensor, preferably a recent one."""
        names = list(self.shapes)
        return names[max(0, len(names) - 1 - int(self.random.expovariate(0.5)))]

    def constant(self, values: list[int]) -> str:
        name = f"c{len(self.inputs)}"
        self.inputs.append(constant(name, values))
        return name

    def emit(self, op_type: str, inputs: list[str], call: Callable[..., Tensor], **attributes: object) -> None:
        """PyTorch computes the shape, from zeros."""
        read = [torch.zeros(self.shapes[name]) for name in inputs if name in self.shapes]
        shape = tuple(call(*read).shape)
        if math.prod(shape) > LARGEST:
            return
        name = f"t{len(self.nodes)}"
        self.nodes.append(Node(op_type, inputs, [name], attributes))
        self.calls.append(call)
        self.shapes[name] = shape

    def add_arithmetic(self, x: str) -> None:
        kind = self.random.choice(["unary", "binary", "square", "matmul", "softmax"])
        shape = self.shapes[x]
        if kind == "unary":
            op_type = self.random.choice(sorted(UNARY))
            self.emit(op_type, [x], UNARY[op_type])
        elif kind == "binary":
            y = self.random.choice(list(self.shapes))
            if all(1 in (a, b) or a == b for a, b in zip(shape[::-1], self.shapes[y][::-1])):
                op_type = self.random.choice(sorted(BINARY))
                self.emit(op_type, [x, y], BINARY[op_type])
        elif kind == "square":
            self.emit("Mul", [x, x], torch.mul)
        elif kind == "matmul" and len(shape) >= 2:
            order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
            self.emit("Transpose", [x], lambda v: v.transpose(-1, -2), perm=order)
            self.emit("MatMul", [x, list(self.shapes)[-1]], torch.matmul)
        elif kind == "softmax" and shape:
            axis = self.random.randrange(-len(shape), len(shape))
            self.emit("Softmax", [x], lambda v: v.softmax(axis), axis=axis)

    def add_movement(self, x: str) -> None:
        shape = self.shapes[x]
        kinds = ["reshape", "transpose", "slice", "concat", "expand", "reduce"] if shape else []
        kind = self.random.choice([*kinds, "unsqueeze"])
        axis = self.random.randrange(len(shape)) if shape else 0
        if kind == "reshape":
            sizes = [size for size in shape if size > 1]
            self.random.shuffle(sizes)
            sizes = [*sizes[:-2], math.prod(sizes[-2:])]
            self.emit("Reshape", [x, self.constant(sizes)], lambda v: v.reshape(sizes))
        elif kind == "transpose":
            order = self.random.sample(range(len(shape)), len(shape))
            self.emit("Transpose", [x], lambda v: v.permute(order), perm=order)
        elif kind == "slice":
            begin = self.random.randrange(shape[axis])
            end = self.random.randint(begin + 1, shape[axis])
            bounds = [self.constant([bound]) for bound in (begin, end, axis)]
            self.emit("Slice", [x, *bounds], lambda v: v.narrow(axis, begin, end - begin))
        elif kind == "concat":
            parts = [x, *[name for name, other in self.shapes.items() if other == shape][:2]]
            self.emit("Concat", parts, lambda *v: torch.cat(v, axis), axis=axis)
        elif kind == "expand":
            sizes = [2, *(3 if size == 1 else size for size in shape)]
            self.emit("Expand", [x, self.constant(sizes)], lambda v: v.expand(sizes))
        elif kind == "reduce":
            keep = self.random.randint(0, 1)
            self.emit("ReduceMean", [x], lambda v: v.mean(axis, keepdim=bool(keep)), axes=[axis], keepdims=keep)
        else:
            self.emit("Unsqueeze", [x, self.constant([0])], lambda v: v.unsqueeze(0))

    def build(self, name: str) -> Case:
        while len(self.nodes) < 4 + self.random.randrange(10):
            self.random.choice([self.add_arithmetic, self.add_movement])(self.pick())
        read = {name for node in self.nodes for name in node.inputs}
        inputs = [tensor for tensor in self.inputs if tensor.name in read]
        outputs = [node.outputs[0] for node in self.nodes if node.outputs[0] not in read]
        return Case(name, inputs, lambda *tensors: self.run(dict(zip([t.name for t in inputs], tensors)), outputs),
                    nodes=self.nodes, output_names=outputs, counts_as="random graph")

    def run(self, values: dict[str, Tensor], outputs: list[str]) -> tuple[Tensor, ...]:
        for node, call in zip(self.nodes, self.calls):
            read = [values[name] for name in node.inputs if name in self.shapes]
            values[node.outputs[0]] = call(*read)
        return tuple(values[name] for name in outputs)


def cases() -> Iterator[Case]:
    for seed in range(CASES):
        yield RandomGraph(seed).build(f"random_graph_{seed}")
