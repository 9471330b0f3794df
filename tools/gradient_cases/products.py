"""MatMul, Gemm and Einsum."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradient_cases.framework import Case, constant, data, exported, f32, graph, in_turn, op
from net import Net, net


def cases() -> Iterator[Case]:
    return in_turn(matmuls, gemms, einsums, modules)


def named(*shapes: tuple[int, ...]) -> str:
    return "_".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def matmuls() -> Iterator[Case]:
    for a, b in (((3, 4), (4, 5)), ((1, 4), (4, 1)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)),
                 ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
                 ((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 4, 5)),
                 ((2, 2, 3, 4), (2, 2, 4, 5)), ((2, 1, 3, 4), (3, 4, 2)), ((2, 1, 3, 4), (1, 3, 4, 2)),
                 ((3, 1, 2, 4), (2, 4, 3)), ((2, 3, 2, 2, 4), (3, 1, 4, 3)), ((1, 1, 4), (3, 4, 2))):
        yield op(f"matmul_{named(a, b)}", "MatMul", [data("A", a), data("B", b)], lambda a, b: a @ b)
    yield op("matmul_square", "MatMul", [data("A", (3, 3)), data("A2", (3, 3))], lambda a, b: a @ b)
    yield graph("matmul_with_itself", ["Y = MatMul A A"], [data("A", (2, 3, 3))], lambda a: a @ a)
    yield graph("matmul_with_own_transpose", ["T = Transpose A perm=[0,2,1]", "Y = MatMul A T"],
                [data("A", (2, 3, 4))], lambda a: a @ a.transpose(1, 2))
    yield graph(
        "matmul_heads",
        ["R = Reshape X shape", "Q = Transpose R perm=[0,2,1,3]", "K = Transpose R perm=[0,2,3,1]", "S = MatMul Q K",
         "O = MatMul S Q", "T = Transpose O perm=[0,2,1,3]", "M = Reshape T back", "Y = MatMul M W"],
        [data("X", (2, 3, 8)), constant("shape", [2, 3, 2, 4]), constant("back", [0, 0, 8]), data("W", (8, 5))], heads)


def heads(x: Tensor, shape: Tensor, back: Tensor, w: Tensor) -> Tensor:
    parts = x.reshape(2, 3, 2, 4)
    q, k = parts.permute(0, 2, 1, 3), parts.permute(0, 2, 3, 1)
    return (q @ k @ q).permute(0, 2, 1, 3).reshape(2, 3, 8) @ w


def gemms() -> Iterator[Case]:
    for left in (0, 1):
        for right in (0, 1):
            for c in (None, (), (1,), (5,), (1, 5), (3, 1), (3, 5)):
                a = (4, 3) if left else (3, 4)
                b = (5, 4) if right else (4, 5)
                inputs = [data("A", a), data("B", b)]
                if c is not None:
                    inputs.append(data("C", c))
                shape = "none" if c is None else named(c)
                yield op(f"gemm_{left}{right}_{shape}", "Gemm", inputs,
                         lambda a, b, c=0.0: (a.T if left else a) @ (b.T if right else b) + c,
                         transA=left, transB=right)
    for alpha, beta in ((0.5, 1.0), (1.0, 0.0), (2.0, -0.25), (-1.5, 3.0)):
        yield op(f"gemm_alpha{alpha}_beta{beta}", "Gemm", [data("A", (3, 4)), data("B", (5, 4)), data("C", (5,))],
                 lambda a, b, c: alpha * a @ b.T + beta * c, alpha=alpha, beta=beta, transB=1)
    odd = f32(0.1)
    yield op("gemm_odd_alpha", "Gemm", [data("A", (1, 4)), data("B", (4, 2))], lambda a, b: odd * a @ b, alpha=odd)


def einsum(equation: str, *shapes: tuple[int, ...]) -> Case:
    safe = equation.replace("->", "_to_").replace(",", "_").replace(".", "e").replace(" ", "-")
    return op(f"einsum_{safe}_{named(*shapes)}", "Einsum", [data("ABCD"[i], shape) for i, shape in enumerate(shapes)],
              lambda *operands: torch.einsum(equation, *operands), equation=equation)


def einsums() -> Iterator[Case]:
    # One operand: permutations, sums, diagonals.
    yield einsum("ij->ji", (3, 4))
    yield einsum("ijk->kij", (2, 3, 4))
    yield einsum("ij->", (3, 4))
    yield einsum("ijk->j", (2, 3, 4))
    yield einsum("ii->i", (4, 4))
    yield einsum("ii->", (4, 4))
    yield einsum("iij->j", (3, 3, 2))
    yield einsum("...ij->...ji", (2, 3, 4))
    yield einsum("...i->...", (2, 3, 4))
    yield einsum("ba", (3, 4))
    # Two operands.
    yield einsum("ij,jk->ik", (3, 4), (4, 5))
    yield einsum("ij,kj->ik", (3, 4), (5, 4))
    yield einsum("ij,jk", (3, 4), (4, 5))
    yield einsum("bij,bjk->bik", (2, 3, 4), (2, 4, 5))
    yield einsum("bij,jk->bik", (2, 3, 4), (4, 5))
    yield einsum("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4))
    yield einsum("bhqk,bhkd->bqhd", (2, 2, 3, 5), (2, 2, 5, 4))
    yield einsum("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4))
    yield einsum("btc,hcd->bhtd", (2, 3, 4), (2, 4, 5))
    yield einsum("i,j->ij", (3,), (4,))
    yield einsum("i,i->", (4,), (4,))
    yield einsum("i,i->i", (4,), (4,))
    yield einsum("ij,ij->i", (3, 4), (3, 4))
    yield einsum("ij,jk->k", (3, 4), (4, 5))
    yield einsum("ij,k->jk", (3, 4), (5,))
    yield einsum("ijk,jil->kl", (3, 2, 4), (2, 3, 2))
    yield einsum("ii,ij->j", (3, 3), (3, 2))
    yield einsum("ij,jj->i", (2, 3), (3, 3))
    yield einsum("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5))
    yield einsum("...ij,...jk->...ik", (2, 2, 3, 4), (4, 5))
    yield einsum("...ij,...jk->...ik", (2, 1, 3, 4), (3, 4, 2))
    yield einsum("...i,...i->...", (2, 3, 4), (3, 4))
    yield einsum("...ij,jk", (2, 3, 4), (4, 5))
    yield einsum("bc...,cd->bd...", (2, 3, 2, 2), (3, 4))
    yield einsum("nctkv,kvw->nctw", (2, 3, 2, 2, 4), (2, 4, 4))
    yield einsum("b i j , b j k -> b i k", (2, 3, 4), (2, 4, 2))
    yield einsum("Ab,bA->A", (3, 4), (4, 3))
    # More operands.
    yield einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5))
    yield einsum("i,j,k->ijk", (2,), (3,), (4,))
    yield einsum("bi,bj,ijk->bk", (2, 3), (2, 4), (3, 4, 2))
    yield einsum("ij,ij,ij->", (2, 3), (2, 3), (2, 3))
    yield einsum("ab,bc,cd,de->ae", (2, 3), (3, 2), (2, 4), (4, 2))
    yield einsum("...i,...i,ij->...j", (2, 3), (2, 3), (3, 4))


@net(lambda: dict(q=nn.Linear(4, 6, bias=False), k=nn.Linear(4, 6, bias=False)))
def score(m: Net, x: Tensor) -> Tensor:
    """Linear attention by einsum."""
    q = m.q(x).reshape(2, 5, 2, 3)
    k = m.k(x).reshape(2, 5, 2, 3)
    context = torch.einsum("bthd,bthe->bhde", torch.softmax(k, 1), q)
    return torch.einsum("bhde,bthd->bthe", context, torch.softmax(q, -1)).flatten(2)


def modules() -> Iterator[Case]:
    yield exported("exported_linear_attention", score(), [data("input", (2, 5, 4))])
    yield exported("exported_linear_vector", nn.Linear(4, 3), [data("input", (4,))])
    yield exported("exported_linear_matrix", nn.Linear(4, 3), [data("input", (2, 4))])
    yield exported("exported_linear_4d", nn.Linear(4, 3, bias=False), [data("input", (2, 3, 2, 4))])
    yield op("bilinear", "Einsum", [data("X", (5, 3)), data("W", (2, 3, 4)), data("Y0", (5, 4))],
             lambda x, w, y: torch.einsum("bi,oij,bj->bo", x, w, y), equation="bi,oij,bj->bo")
