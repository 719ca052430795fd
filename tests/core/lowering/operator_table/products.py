"""Linear layers, products of matrices, and distances."""

from tests.core.lowering.operator_table.drawing import (
    F32,
    FLOATS,
    SIGNED,
    Tensors,
    like,
)
from tests.core.lowering.operator_table.entries import Entry

_WITHOUT = "no relax operator for"

ENTRIES = (
    Entry(
        "linear",
        {"x": Tensors(FLOATS, (2, 3, 5)), "w": Tensors("x", (4, 5)), "b": Tensors("x", (4,))},
        "F.linear(x, w, b); F.linear(x[0], w); F.linear(x, w, bias=b); "
        "F.linear(x, weight=w, bias=b); nn.Linear(5, 3)(x); nn.Linear(5, 3, bias=False)(x[0]); "
        "nn.Linear(5, 3)(x[0, 0]); aten.linear.default(x, w, b)",
    ),
    Entry(
        "bilinear",
        {"x": Tensors(F32, (2, 3)), "y": Tensors(F32, (2, 4))},
        "nn.Bilinear(3, 4, 2)(x, y); nn.Bilinear(3, 4, 2, bias=False)(x[None], y[None]); "
        "F.bilinear(x, y, torch.ones(2, 3, 4))",
    ),
    Entry(
        "matmul",
        {"x": Tensors((*FLOATS, *SIGNED), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        "x @ y; torch.matmul(x, y); x.matmul(y[0]); torch.matmul(x[0], y); x[0] @ y[0]; "
        "x[0, 0] @ y[0]; x @ y[0, :, 0]; aten.matmul.default(x, y)",
    ),
    Entry(
        "mm",
        {"x": Tensors((*FLOATS, "int64"), (3, 4)), "y": Tensors("x", (4, 5))},
        "torch.mm(x, y); x.mm(y); aten.mm.default(x, y)",
    ),
    Entry(
        "int_mm",
        {"x": Tensors(("int8",), (18, 8)), "y": Tensors("x", (8, 16))},
        "torch._int_mm(x, y); aten._int_mm.default(x, y)",
    ),
    Entry(
        "bmm",
        {"x": Tensors((*FLOATS, "int64"), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        "torch.bmm(x, y); x.bmm(y); aten.bmm.default(x, y)",
    ),
    Entry(
        "mv",
        {"x": Tensors((*FLOATS, "int64"), (3, 4)), "y": Tensors("x", (4,))},
        "torch.mv(x, y); x.mv(y); torch.dot(x[0], y); torch.inner(x, y); torch.vdot(x[0], y)",
    ),
    Entry(
        "addmm",
        {
            "x": Tensors((*FLOATS, "int64"), (3, 5)),
            "y": Tensors("x", (3, 4)),
            "z": Tensors("x", (4, 5)),
        },
        "torch.addmm(x, y, z); torch.addmm(x[0], y, z, beta=2, alpha=3); x.addmm(y, z); "
        "torch.addmm(x, y, z, beta=0); aten.addmm.default(x, y, z); "
        "torch.addmv(x[:, 0], y, z[:, 0])",
    ),
    Entry(
        "baddbmm",
        {
            "x": Tensors((*FLOATS, "int64"), (2, 3, 5)),
            "y": Tensors("x", (2, 3, 4)),
            "z": Tensors("x", (2, 4, 5)),
        },
        "torch.baddbmm(x, y, z); x.baddbmm(y, z, beta=2, alpha=3); aten.baddbmm.default(x, y, z); "
        "torch.addbmm(x[0], y, z)",
    ),
    Entry(
        "grouped_mm",
        {
            "x": Tensors(("float32", "bfloat16"), (5, 8), layouts=("contiguous",)),
            "y": Tensors("x", (3, 8, 16), layouts=("contiguous",)),
        },
        "F.grouped_mm(x, y, offs=torch.tensor([2, 2, 5], dtype=torch.int32))",
    ),
    Entry(
        "outer",
        {"x": Tensors((*FLOATS, "int64"), (3,)), "y": Tensors("x", (4,))},
        "torch.outer(x, y); x.outer(y); torch.ger(x, y)",
    ),
    Entry(
        "kron",
        {
            "x": Tensors(("float32", "int64"), (2, 3), layouts=("contiguous",)),
            "y": Tensors("x", (2, 2), layouts=("contiguous",)),
        },
        "torch.kron(x, y)",
        loose_export=True,
    ),
    Entry(
        "cross",
        {"x": Tensors(("float32", "int64"), (2, 3)), "y": Tensors("x", (2, 3))},
        "torch.cross(x, y, dim=1); torch.linalg.cross(x, y)",
        loose_export=True,
    ),
    Entry(
        "tensordot",
        {"x": Tensors(("float32", "float64"), (2, 3, 4)), "y": Tensors("x", (4, 3, 5))},
        "torch.tensordot(x, y, dims=([1, 2], [1, 0])); torch.tensordot(x, y.transpose(0, 1), 2)",
        loose_export=True,
    ),
    Entry(
        "einsum",
        {"x": Tensors((*FLOATS, "int64"), (2, 3, 4)), "y": Tensors("x", (2, 4, 5))},
        "torch.einsum('bij,bjk->bik', x, y); torch.einsum('...ij,...jk->...ik', x, y); "
        "torch.einsum('ij,kj', x[0], x[1]); torch.einsum('bij->bji', x); "
        "torch.einsum('bij,bjk->ik', [x, y]); torch.einsum('ij->', x[0]); "
        "torch.einsum('bii->bi', y[:, :, :4])",
    ),
    Entry(
        "einsum of several",
        {"x": Tensors((*FLOATS, "int64"), (2, 3, 4))},
        "torch.einsum('bhi,bhj,bh->bij', x, x, x[..., 0]); "
        "torch.einsum('bhi,bji,bh,bjk->bhk', x, x, x[..., 0], x)",
    ),
    Entry(
        "chain_matmul",
        {"x": Tensors(F32, (2, 3)), "y": Tensors(F32, (3, 4))},
        "torch.linalg.multi_dot([x, y])",
        loose_export=True,
    ),
    Entry(
        "cdist",
        {"x": Tensors(("float32", "float64"), (2, 3, 4)), "y": Tensors("x", (2, 5, 4))},
        "torch.cdist(x, y); torch.cdist(x[0], y[0], p=1); torch.cdist(x, y, p=3.0)",
    ),
    Entry(
        "cdist of many points",
        {"x": Tensors(("float32", "float64"), (2, 30, 4)), "y": Tensors("x", (2, 5, 4))},
        "torch.cdist(x, y); torch.cdist(x, y, 2.0, 'donot_use_mm_for_euclid_dist'); "
        "torch.cdist(y, y[0], compute_mode='use_mm_for_euclid_dist')",
    ),
    Entry(
        "pairwise_distance",
        {"x": Tensors(("float32", "float64"), (3, 4)), "y": like("x")},
        "F.pairwise_distance(x, y); nn.PairwiseDistance(p=1)(x, y); "
        "F.pairwise_distance(x, y, keepdim=True)",
    ),
    Entry(
        "cosine_similarity",
        {"x": Tensors(("float32", "float64"), (3, 4)), "y": like("x")},
        "F.cosine_similarity(x, y); torch.cosine_similarity(x, y, dim=0); "
        "nn.CosineSimilarity(dim=-1)(x, y)",
    ),
    Entry(
        "linalg",
        {"x": Tensors(("float32", "float64"), (2, 3, 3)), "y": Tensors("x", (2, 3, 4))},
        "torch.linalg.inv(x.tril() + 9 * torch.eye(3, dtype=x.dtype)); torch.linalg.det(x); "
        "torch.inverse(x[0].triu() - 9 * torch.eye(3, dtype=x.dtype)); torch.det(x[0]); "
        "torch.linalg.solve(x.flip(1) + 9 * torch.eye(3, dtype=x.dtype).flip(0), y); "
        "torch.linalg.solve(x[0] + 9 * torch.eye(3, dtype=x.dtype), y[0, :, 0]); "
        "torch.linalg.solve(x + 9 * torch.eye(3, dtype=x.dtype), y.mT, left=False); "
        "torch.linalg.cholesky(x @ x.mT + torch.eye(3, dtype=x.dtype)); "
        "torch.cholesky(x[1] @ x[1].T + torch.eye(3, dtype=x.dtype), upper=True); "
        "torch.linalg.solve_triangular(x + 9 * torch.eye(3, dtype=x.dtype), y, upper=True); "
        "torch.linalg.solve_triangular(x, y.mT, upper=False, left=False, unitriangular=True); "
        "torch.triangular_solve(y, x + 9 * torch.eye(3, dtype=x.dtype))[0]; "
        "torch.cholesky_solve(y, x.tril() + 9 * torch.eye(3, dtype=x.dtype))",
        {
            "torch.linalg.svd(x)[1]": _WITHOUT,
            "torch.linalg.inv(torch.eye(65) + x[0, 0, 0].float())": "no small stacks",
        },
    ),
    Entry(
        "cov",
        {"x": Tensors(("float32", "float64"), (3, 5))},
        "torch.cov(x); x.cov(correction=0); torch.cov(x[0]); torch.corrcoef(x); x[0].corrcoef()",
        tracers=("fx",),
    ),
)
