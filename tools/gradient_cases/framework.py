"""Cases of operators whose outputs and gradients PyTorch computes for the tests of execute/.

A family is a file in this folder with a function `cases()`. Each case is a small ONNX graph, numbers for
its tensors, and the same function in PyTorch:

    yield op("softmax_axis0", "Softmax", [data("X", (3, 4))], lambda x: torch.softmax(x, 0), axis=0)
    yield graph("relu_of_product", ["P = MatMul X W", "Y = Relu P"], [data("X", (3, 4)), data("W", (4, 2))],
                lambda x, w: torch.relu(x @ w))

A case is recorded before the next one is made, so its function may read the variables of a loop.
`tools/make_gradient_fixtures.py` runs PyTorch in double precision, feeds a generated gradient into
every output and writes the results. Numbers are from a counter-based generator that the tests also
have (class Numbers), so only results are stored.

In batch normalisation for training, running mean and variance are buffer() inputs and the second and
third output: return them after PyTorch has updated them in place.
"""

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from gradient_cases.onnx_check import check_model
from net import Net, exported_model

SAMPLES = 8  # Elements kept of a larger tensor, with its norm and its projection.
WHOLE = 12  # A tensor up to this size is kept whole.

# --- Numbers ---------------------------------------------------------------------------------

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def fnv1a64(text: str) -> int:
    key = 0xCBF29CE484222325
    for byte in text.encode():
        key = (key ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return key


class Numbers:
    """Element i of a tensor from its name, a seed and i: splitmix64 at a random place.

    Equals monet::NumberGenerator bit for bit.
    """

    def __init__(self, name: str, seed: int) -> None:
        mixed = seed * int(_GOLDEN) & 0xFFFFFFFFFFFFFFFF
        self._key = np.uint64(fnv1a64(name) ^ mixed)

    def raw(self, count: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            z = self._key + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))

    def uniform(self, count: int) -> np.ndarray:
        """Returns numbers in [-1, 1)."""
        return (self.raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0

    def below(self, count: int, limit: int) -> np.ndarray:
        """Integers 0 to limit - 1."""
        return (self.raw(count) % np.uint64(limit)).astype(np.int64)


def f32(value: float) -> float:
    """Returns the number read from a single-precision attribute or scalar constant.

    It is the written decimal if that has at most six digits, else the rounded number.
    """
    digits = np.format_float_scientific(np.float32(value), unique=True, trim="-")
    short = sum(c.isdigit() for c in digits.split("e")[0]) <= 6
    return float(digits) if short else float(np.float32(value))


# --- Tensors ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """An input or constant of a case."""

    name: str
    shape: tuple[int, ...]
    kind: str  # data: has a gradient; buffer: real, without a gradient; integer; constant: known values
    offset: float = 0.0
    scale: float = 1.0
    range: int = 0  # integer: below this, plus offset
    levels: int = 0  # real: offset + scale * (0 to levels - 1), for ties
    type: str = "float"  # ONNX element type
    values: np.ndarray | None = None

    def numbers(self, seed: int) -> np.ndarray:
        count = math.prod(self.shape)
        generator = Numbers(self.name, seed)
        if self.values is not None:
            result = self.values
        elif self.kind == "integer":
            result = generator.below(count, self.range) + int(self.offset)
        elif self.levels:
            result = self.offset + self.scale * generator.below(count, self.levels)
        else:
            result = self.offset + self.scale * generator.uniform(count)
        return np.asarray(result).reshape(self.shape)

    def to_json(self) -> dict:
        record: dict = {"name": self.name, "shape": list(self.shape), "kind": self.kind}
        if self.type != "float":
            record["type"] = self.type
        if self.values is not None:
            integral = self.type not in ("float", "double")
            cast = int if integral else float
            record["values"] = [cast(value) for value in np.asarray(self.values).reshape(-1)]
        elif self.kind == "integer":
            record.update(offset=int(self.offset), range=self.range)
        else:
            record.update(offset=float(self.offset), scale=float(self.scale))
            if self.levels:
                record["levels"] = self.levels
        return record


def data(name: str, shape: Sequence[int] = (), *, offset: float = 0.0, scale: float = 1.0, levels: int = 0,
         values: object = None) -> Input:
    """Real numbers with a gradient: offset + scale * [-1, 1), or the given ones."""
    if values is not None:
        array = np.asarray(values, dtype=np.float64)
        return Input(name, array.shape, "data", values=array)
    return Input(name, tuple(shape), "data", offset, scale, levels=levels)


def buffer(name: str, shape: Sequence[int], *, offset: float = 0.0, scale: float = 1.0) -> Input:
    """Real numbers without a gradient, such as running statistics or an added mask."""
    return Input(name, tuple(shape), "buffer", offset, scale)


def integer(name: str, shape: Sequence[int], limit: int, *, offset: int = 0, type: str = "int64") -> Input:
    """Integers offset to offset + limit - 1, fed in when the step runs."""
    return Input(name, tuple(shape), "integer", offset, range=limit, type=type)


def constant(name: str, values: object, type: str | None = None) -> Input:
    """Values written into the ONNX file: integers are int64, truth values bool, others float."""
    array = np.asarray(values)
    if type is None:
        type = {"i": "int64", "u": "int64", "b": "bool", "f": "float"}[array.dtype.kind]
    if type == "float":
        single = array.astype(np.float32).astype(np.float64)
        array = np.full(array.shape, f32(array.item())) if array.size == 1 else single
    return Input(name, array.shape, "constant", type=type, values=array)


@dataclass(frozen=True)
class Node:
    op_type: str
    inputs: Sequence[str]  # "" = left out
    outputs: Sequence[str]
    attributes: dict = field(default_factory=dict)
    domain: str = ""

    def to_json(self) -> dict:
        record: dict = {"op_type": self.op_type, "inputs": list(self.inputs), "outputs": list(self.outputs)}
        if self.domain:
            record["domain"] = self.domain
        if self.attributes:
            record["attributes"] = {key: attribute_to_json(key, value) for key, value in self.attributes.items()}
        return record


def attribute_to_json(name: str, value: object) -> object:
    """Returns the attribute as JSON: an integer is INT, a number with a point FLOAT, an object a tensor."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and f32(value) != value:
        raise ValueError(f"attribute {name}={value!r} is not single precision: use f32()")
    if isinstance(value, (list, tuple)):
        return [attribute_to_json(name, element) for element in value]
    if isinstance(value, np.ndarray):
        kind = constant("", value, ONNX_TYPES.get(value.dtype.name)).to_json()
        return {key: kind[key] for key in ("shape", "type", "values") if key in kind}
    return value


ONNX_TYPES = {"float64": "double", "float32": "float", "int64": "int64", "int32": "int32"}

# --- Cases -----------------------------------------------------------------------------------


@dataclass
class Case:
    """One graph and the same function in PyTorch.

    The function gets the inputs that are not None, in order (constants too), as double, int64 or
    bool tensors, and returns one tensor, or a tuple with one for every output. With `op_type` they
    are the inputs of that operator, None for an omitted one, and its outputs are "Y", or "Y0",
    "Y1", ...; `nodes` name what they read and write.
    """

    name: str
    inputs: Sequence[Input | None]
    torch: Callable[..., Tensor | tuple[Tensor, ...]]
    op_type: str = ""
    domain: str = ""
    attributes: dict = field(default_factory=dict)
    outputs: int = 1
    opset: int = 17
    nodes: Sequence[Node] | None = None
    output_names: Sequence[str] | None = None  # with `nodes`: the last node's, if not given
    counts_as: str = ""  # in the count by operator; the (first) operator's type, if not given

    def graph(self) -> tuple[list[Node], list[str]]:
        if self.nodes is not None:
            names = self.output_names or [name for name in self.nodes[-1].outputs if name]
            return list(self.nodes), list(names)
        names = ["Y"] if self.outputs == 1 else [f"Y{i}" for i in range(self.outputs)]
        inputs = [tensor.name if tensor else "" for tensor in self.inputs]
        return [Node(self.op_type, inputs, names, self.attributes, self.domain)], names

    @property
    def label(self) -> str:
        return self.counts_as or self.op_type or self.nodes[0].op_type

    def record(self) -> dict:
        """Returns the case and PyTorch's results in the form that the test reads."""
        nodes, outputs = self.graph()
        tensors = [tensor for tensor in self.inputs if tensor is not None]
        seed = fnv1a64(self.name) & 0xFFFFFFFF
        check_model(self, nodes, outputs, tensors)
        arguments = [as_torch(tensor, tensor.numbers(seed)) for tensor in tensors]
        results = self.torch(*arguments)
        results = (results,) if isinstance(results, Tensor) else tuple(results)
        if len(results) != len(outputs):
            raise ValueError(f"{self.name}: {len(results)} results for {len(outputs)} outputs")
        feed_gradients(results, outputs, seed)
        expected = [{"output": name, **summary(result, name)} for name, result in zip(outputs, results)]
        for tensor, argument in zip(tensors, arguments):
            if tensor.kind == "data":
                grad = argument.grad
                grad = torch.zeros_like(argument) if grad is None else grad
                expected.append({"gradient": tensor.name, **summary(grad, tensor.name)})
        return {"name": self.name, "label": self.label, "opset": self.opset, "seed": seed,
                "inputs": [tensor.to_json() for tensor in tensors],
                "nodes": [node.to_json() for node in nodes], "outputs": outputs, "expected": expected}


def op(name: str, op_type: str, inputs: Sequence[Input | None], torch: Callable, *, domain: str = "",
       outputs: int = 1, opset: int = 17, counts_as: str = "", **attributes: object) -> Case:
    """A case of one operator with these attributes."""
    return Case(name, inputs, torch, op_type, domain, attributes, outputs, opset, counts_as=counts_as)


def graph(name: str, lines: Sequence[str | Node], inputs: Sequence[Input], torch: Callable, **options: object) -> Case:
    """A case of several operators, written as parse() reads them; `options` are those of Case."""
    return Case(name, inputs, torch, nodes=parse(*lines), **options)


def parse(*lines: str | Node) -> list[Node]:
    """Nodes of lines "OUTPUT... = OPERATOR INPUT... NAME=VALUE...": "Y = Flatten X axis=1".

    The name "-" is an omitted input or output, and an operator of another domain is written "DOMAIN.OPERATOR".
    """
    nodes = []
    for line in lines:
        if isinstance(line, Node):
            nodes.append(line)
            continue
        outputs, _, call = line.partition(" = ")
        op_type, *words = call.split()
        names = [word for word in words if "=" not in word]
        pairs = [word.split("=") for word in words if "=" in word]
        inputs, outputs = (["" if word == "-" else word for word in part] for part in (names, outputs.split()))
        domain, _, op_type = op_type.rpartition(".")
        nodes.append(Node(op_type, inputs, outputs, {key: literal(text) for key, text in pairs}, domain))
    return nodes


def literal(text: str) -> object:
    """A number or a list of numbers, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def in_turn(*parts: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    """Returns the cases of all parts."""
    return (case for part in parts for case in part())


def as_torch(tensor: Input, numbers: np.ndarray) -> Tensor:
    if tensor.type == "bool":
        return torch.from_numpy(numbers.astype(np.bool_))
    if tensor.type in ("float", "double"):
        made = torch.from_numpy(np.array(numbers, dtype=np.float64))
        return made.requires_grad_(tensor.kind == "data")
    return torch.from_numpy(np.array(numbers, dtype=np.int64))


def feed_gradients(results: Sequence[Tensor], names: Sequence[str], seed: int) -> None:
    """Runs backward from all outputs that depend on data, each with a gradient of numbers named NAME.grad."""
    roots = [(r, n) for r, n in zip(results, names) if r.requires_grad]
    gradients = [torch.from_numpy(Numbers(f"{name}.grad",
                                          seed).uniform(root.numel()).reshape(root.shape)) for root, name in roots]
    if roots:
        torch.autograd.backward([root for root, _ in roots], gradients)


def summary(result: Tensor, name: str, whole: int = WHOLE, samples: int = SAMPLES) -> dict:
    """Shape, largest magnitude, norm, projection on generated numbers, and some elements.

    A misplaced or missing element anywhere changes the projection.
    """
    flat = result.detach().to(torch.float64).reshape(-1).numpy()
    if not np.isfinite(flat).all():
        raise ValueError(f"{name}: not finite")
    count = flat.size
    record: dict = {"shape": list(result.shape)}
    if not result.is_floating_point():
        record["integers"] = [int(value) for value in flat]
        return record
    if count <= whole:
        record["values"] = [float(value) for value in flat]
        return record
    at = sorted({0, count - 1, *Numbers("at", count).below(samples - 2, count).tolist()})
    record["max"] = float(np.abs(flat).max())
    record["norm"] = float(np.sqrt(math.fsum(flat * flat)))
    record["projection"] = math.fsum(flat * Numbers("projection", count).uniform(count))
    record["at"] = at
    record["values"] = [float(flat[i]) for i in at]
    return record


# --- ONNX ------------------------------------------------------------------------------------

def exported(name: str, module: torch.nn.Module, inputs: Sequence[Input], *, opset: int = 17,
             double: bool = True) -> Case:
    """Makes a case of a PyTorch module as torch.onnx writes it: the chain of operators in users' files.

    Its parameters are generated by name (buffers too); its constants are written in double
    precision, so that results agree to 1e-10. With double=False they are in single precision, as in
    users' files; then only chains recognised as one operator agree. Attributes are single precision:
    use such numbers in the module, by f32().
    """
    module = module.to(torch.float64 if double else torch.float32).train()
    states = []
    for key, tensor in (*module.named_parameters(), *module.named_buffers()):
        if not tensor.is_floating_point():
            continue
        kind = "data" if isinstance(tensor, torch.nn.Parameter) else "buffer"
        spread = 1.0 / math.sqrt(max(1, math.prod(tensor.shape[1:])))
        around = 1.0 if tensor.dim() == 1 and ("weight" in key or "var" in key) else 0.0
        states.append(Input(key, tuple(tensor.shape), kind, around, 0.5 if around else spread))
    nodes, outputs, constants = trace(module, inputs, opset, double)
    if double:
        inputs, states, constants = map(widened, (inputs, states, constants))
        nodes = widened_nodes(nodes)
    used = {name for node in nodes for name in node.inputs}
    states = [state for state in states if state.name in used]
    module = module.double()

    def run(*arguments: Tensor) -> tuple[Tensor, ...]:
        given = arguments[len(inputs) : len(inputs) + len(states)]
        for state, numbers in zip(states, given):
            owner, _, leaf = state.name.rpartition(".")
            owner = module.get_submodule(owner)
            if leaf in owner._parameters:
                del owner._parameters[leaf]
            setattr(owner, leaf, numbers)
        return tuple(flatten(module(*arguments[: len(inputs)])))

    return Case(name, [*inputs, *states, *constants], run, opset=opset, nodes=nodes, output_names=outputs,
                counts_as=f"exported {kind_of(module)}")


def kind_of(module: torch.nn.Module) -> str:
    """Returns the name of its class, or of its function in the same form."""
    return module.run.__name__.title().replace("_", "") if isinstance(module, Net) else type(module).__name__


def widened(tensors: Sequence[Input]) -> list[Input]:
    """Converts floating tensors to double precision."""
    return [replace(t, type="double") if t.type == "float" else t for t in tensors]


def widened_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Restores constants of double modules that torch.onnx writes in single precision.

    The scales of Resize are single precision by definition.
    """
    kept: set[str] = set()
    for node in reversed(nodes):
        if node.op_type == "Resize":
            kept.update(node.inputs[1:3])
        elif kept & set(node.outputs):
            kept.update(node.inputs)
    wide = []
    for node in nodes:
        attributes = dict(node.attributes)
        value = attributes.get("value")
        is_kept = any(name in kept for name in node.outputs)
        if isinstance(value, np.ndarray) and value.dtype == np.float32 and not is_kept:
            attributes["value"] = value.astype(np.float64)
        if node.op_type == "Cast" and not is_kept and attributes["to"] == onnx.TensorProto.FLOAT:
            attributes["to"] = onnx.TensorProto.DOUBLE
        wide.append(replace(node, attributes=attributes))
    return wide


def short(values: Sequence[int]) -> str:
    """A part of a name: "2x3x4"."""
    return "x".join(map(str, values)) or "none"


def outside(x: Tensor, pads: Sequence[int], value: float = 0.0) -> Tensor:
    """Applies ONNX pads (all begins, then all ends) with F.pad, which counts from the last axis."""
    count = len(pads) // 2
    flat = [side for i in reversed(range(count)) for side in (pads[i], pads[count + i])]
    return torch.nn.functional.pad(x, flat, value=value)


def flatten(results: object) -> list[Tensor]:
    if isinstance(results, Tensor):
        return [results]
    return [tensor for part in results for tensor in flatten(part)]


def trace(module: torch.nn.Module, inputs: Sequence[Input], opset: int, double: bool) -> tuple[
    list[Node], list[str], list[Input]]:
    """Nodes, names of outputs and constants of the module's export."""
    real = torch.float64 if double else torch.float32
    example = []
    for tensor in inputs:
        made = as_torch(tensor, tensor.numbers(0)).detach()
        example.append(made.to(real) if made.is_floating_point() else made)
    graph = exported_model(module, example, opset, input_names=[tensor.name for tensor in inputs]).graph
    states = {key for key, _ in (*module.named_parameters(), *module.named_buffers())}
    constants = [
        constant(t.name, numpy_helper.to_array(t), ONNX_TYPES.get(numpy_helper.to_array(t).dtype.name))
        for t in graph.initializer
        if t.name not in states
    ]
    nodes = []
    for node in graph.node:
        attributes = {}
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if attribute.type == onnx.AttributeProto.TENSOR:
                value = numpy_helper.to_array(value)
            elif isinstance(value, bytes):
                value = value.decode()
            elif attribute.type == onnx.AttributeProto.STRINGS:
                value = [text.decode() for text in value]
            elif attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
                value = list(value)
            elif attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                raise ValueError(f"{node.op_type}: subgraphs are not supported")
            elif attribute.type == onnx.AttributeProto.FLOAT:
                value = f32(value)
            attributes[attribute.name] = value
        nodes.append(Node(node.op_type, list(node.input), list(node.output), attributes, node.domain))
    return nodes, [output.name for output in graph.output], constants
