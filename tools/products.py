"""Multiply-accumulates of the products that PyTorch executes, below modules and composite functions."""

import math
from collections.abc import Iterator

from torch import Tensor

MATRIX_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
VECTOR_PRODUCTS = ("mv", "addmv", "dot")


def convolution_macs(x: Tensor, weight: Tensor, result: Tensor, *, transposed: bool) -> int:
    """Counts one filter for each element of the result, or of the input if transposed; padding included."""
    return (x if transposed else result).numel() * math.prod(weight.shape[1:])


def product_macs(operator: str, args: tuple, result: Tensor) -> int:
    """Returns the multiply-accumulates of a primitive operator, 0 if it is not a product."""
    if operator == "convolution":
        return convolution_macs(args[0], args[1], result, transposed=args[6])
    if operator in MATRIX_PRODUCTS or operator in VECTOR_PRODUCTS:  # the last two tensors are the factors
        return result.numel() * [one for one in args if isinstance(one, Tensor)][-2].shape[-1]
    if "matmul" in operator or "attention" in operator or operator in ("linear", "lstm", "gru", "bilinear", "addbmm"):
        raise NotImplementedError(f"product '{operator}' would go uncounted")
    return 0


def nodes_below(node: object) -> Iterator[object]:
    """Returns `node` and all autograd nodes that receive its gradient."""
    waiting, seen = [node], {node}
    while waiting:
        current = waiting.pop()
        yield current
        for after, _ in current.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                waiting.append(after)
