"""MatMul, Gemm and Einsum."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from gradient_cases.framework import Case, Node, constant, data, exported, f32


def cases() -> Iterator[Case]:
    yield from matmuls()
    yield from gemms()
    yield from einsums()
    yield from modules()


def named(*shapes: tuple[int, ...]) -> str:
    return "_".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def matmuls() -> Iterator[Case]:
    for a, b in (
        ((3, 4), (4, 5)),
        ((1, 4), (4, 1)),
        ((4,), (4,)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((1, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (1, 4, 5)),
        ((2, 2, 3, 4), (2, 2, 4, 5)),
        ((2, 1, 3, 4), (3, 4, 2)),
        ((2, 1, 3, 4), (1, 3, 4, 2)),
        ((3, 1, 2, 4), (2, 4, 3)),
        ((2, 3, 2, 2, 4), (3, 1, 4, 3)),
        ((1, 1, 4), (3, 4, 2)),
    ):
        yield Case(
            f"matmul_{named(a, b)}",
            op_type="MatMul",
            inputs=[data("A", a), data("B", b)],
            torch=lambda a, b: a @ b,
        )
    yield Case(
        "matmul_square",
        op_type="MatMul",
        inputs=[data("A", (3, 3)), data("A2", (3, 3))],
        torch=lambda a, b: a @ b,
    )
    yield Case(
        "matmul_with_itself",
        nodes=[Node("MatMul", ["A", "A"], ["Y"])],
        inputs=[data("A", (2, 3, 3))],
        torch=lambda a: a @ a,
    )
    yield Case(
        "matmul_with_own_transpose",
        nodes=[
            Node("Transpose", ["A"], ["T"], {"perm": [0, 2, 1]}),
            Node("MatMul", ["A", "T"], ["Y"]),
        ],
        inputs=[data("A", (2, 3, 4))],
        torch=lambda a: a @ a.transpose(1, 2),
    )
    yield Case(
        "matmul_heads",
        nodes=[
            Node("Reshape", ["X", "shape"], ["R"]),
            Node("Transpose", ["R"], ["Q"], {"perm": [0, 2, 1, 3]}),
            Node("Transpose", ["R"], ["K"], {"perm": [0, 2, 3, 1]}),
            Node("MatMul", ["Q", "K"], ["S"]),
            Node("MatMul", ["S", "Q"], ["O"]),
            Node("Transpose", ["O"], ["T"], {"perm": [0, 2, 1, 3]}),
            Node("Reshape", ["T", "back"], ["M"]),
            Node("MatMul", ["M", "W"], ["Y"]),
        ],
        inputs=[
            data("X", (2, 3, 8)),
            constant("shape", [2, 3, 2, 4]),
            constant("back", [0, 0, 8]),
            data("W", (8, 5)),
        ],
        torch=heads,
    )


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
                yield Case(
                    f"gemm_{left}{right}_{shape}",
                    op_type="Gemm",
                    attributes={"transA": left, "transB": right},
                    inputs=inputs,
                    torch=lambda a, b, c=0.0, left=left, right=right: (
                        (a.T if left else a) @ (b.T if right else b) + c
                    ),
                )
    for alpha, beta in ((0.5, 1.0), (1.0, 0.0), (2.0, -0.25), (-1.5, 3.0)):
        yield Case(
            f"gemm_alpha{alpha}_beta{beta}",
            op_type="Gemm",
            attributes={"alpha": alpha, "beta": beta, "transB": 1},
            inputs=[data("A", (3, 4)), data("B", (5, 4)), data("C", (5,))],
            torch=lambda a, b, c, alpha=alpha, beta=beta: alpha * a @ b.T + beta * c,
        )
    odd = f32(0.1)
    yield Case(
        "gemm_odd_alpha",
        op_type="Gemm",
        attributes={"alpha": odd},
        inputs=[data("A", (1, 4)), data("B", (4, 2))],
        torch=lambda a, b: odd * a @ b,
    )


def einsum(equation: str, *shapes: tuple[int, ...]) -> Case:
    safe = equation.replace("->", "_to_").replace(",", "_").replace(".", "e").replace(" ", "-")
    return Case(
        f"einsum_{safe}_{named(*shapes)}",
        op_type="Einsum",
        attributes={"equation": equation},
        inputs=[data("ABCD"[i], shape) for i, shape in enumerate(shapes)],
        torch=lambda *operands: torch.einsum(equation, *operands),
    )


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


class Score(nn.Module):
    """Linear attention, as einsum writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(4, 6, bias=False)
        self.k = nn.Linear(4, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q = self.q(x).reshape(2, 5, 2, 3)
        k = self.k(x).reshape(2, 5, 2, 3)
        context = torch.einsum("bthd,bthe->bhde", torch.softmax(k, 1), q)
        return torch.einsum("bhde,bthd->bthe", context, torch.softmax(q, -1)).flatten(2)


def modules() -> Iterator[Case]:
    yield exported("exported_linear_attention", Score(), [data("input", (2, 5, 4))])
    yield exported("exported_linear_vector", nn.Linear(4, 3), [data("input", (4,))])
    yield exported("exported_linear_matrix", nn.Linear(4, 3), [data("input", (2, 4))])
    yield exported("exported_linear_4d", nn.Linear(4, 3, bias=False), [data("input", (2, 3, 2, 4))])
    yield Case(
        "bilinear",
        op_type="Einsum",
        attributes={"equation": "bi,oij,bj->bo"},
        inputs=[data("X", (5, 3)), data("W", (2, 3, 4)), data("Y0", (5, 4))],
        torch=lambda x, w, y: torch.einsum("bi,oij,bj->bo", x, w, y),
    )
