"""Rejects cases that are not valid ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

if TYPE_CHECKING:
    from gradient_cases.framework import Case, Input, Node

TENSOR_TYPES = {"float": onnx.TensorProto.FLOAT, "double": onnx.TensorProto.DOUBLE, "int64": onnx.TensorProto.INT64,
                "int32": onnx.TensorProto.INT32, "bool": onnx.TensorProto.BOOL}


def check_model(case: Case, nodes: Sequence[Node], outputs: Sequence[str], tensors: Sequence[Input]) -> None:
    """Rejects a case that is not valid ONNX; other domains and newer opsets are not checked.

    ONNX 1.12 wrongly rejects ellipses of different lengths in an Einsum.
    """
    if any(node.domain or node.op_type == "Einsum" for node in nodes):
        return
    if case.opset > onnx.defs.onnx_opset_version():
        return
    made = []
    for node in nodes:
        attributes = {key: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value for key,
                      value in node.attributes.items()}
        made.append(onnx.helper.make_node(node.op_type, list(node.inputs), list(node.outputs), **attributes))
    known = [tensor for tensor in tensors if tensor.kind == "constant"]
    initializers = [onnx.helper.make_tensor(t.name, TENSOR_TYPES[t.type], t.shape,
                                            np.asarray(t.values).reshape(-1).tolist()) for t in known]
    inputs = [onnx.helper.make_tensor_value_info(t.name, TENSOR_TYPES[t.type],
                                                 t.shape) for t in tensors if t.kind != "constant"]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = onnx.helper.make_graph(made, "case", inputs, results, initializers)
    opset = onnx.helper.make_opsetid("", case.opset)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        del model.graph.output[:]
        model.graph.output.extend(inferred.graph.output)
        if all(output.type.tensor_type.HasField("shape") for output in inferred.graph.output):
            onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ValueError(f"{case.name}: {error}") from error
